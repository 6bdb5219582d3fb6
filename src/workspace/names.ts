/** The name under which a clone is made before it is renamed into place: no project id begins with a dot. */
export const temporaryClone = (project: string): string => `.mosaic-new-${project}`

/** Left by a preparation that was cut off: nobody has worked in it. */
export const isTemporaryClone = (name: string): boolean => name.startsWith(temporaryClone(''))
