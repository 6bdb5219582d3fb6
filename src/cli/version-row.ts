import { CLIENT_PROTOCOL } from '../client/connect.ts'

interface VersionRow {
  readonly version: string
  readonly protocol: number
  readonly node: string
}

/** What `mosaic version` and `--version` say to programs. */
export const toVersionRow = (version: string): VersionRow => ({ version, protocol: CLIENT_PROTOCOL, node: process.versions.node })
