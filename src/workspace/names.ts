/** The name under which a clone is made before it is renamed into place: no project id begins with a dot. */
export const temporaryClone = (project: string): string => `.mosaic-new-${project}`
