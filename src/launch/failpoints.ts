import type { Failpoint as AnyFailpoint } from '../core/failpoint.ts'

/**
 * Every place at which a host can be made to die, each right before a step that changes something: SIGKILL at any of them
 * must cost nothing that was acknowledged and leave nothing behind. A name that is not here does not compile.
 */
export const FAILPOINTS = [
  // a launch: gate and row, env root, preparation, run directory, sandbox, commit, capability, reply
  'launch.admit',
  'launch.claim',
  'claim.pin',
  'claim.lock',
  'claim.flock',
  'claim.inode-check',
  'claim.read-owner',
  'claim.decide',
  'claim.reset',
  'claim.write-owner',
  'claim.directories',
  'claim.done',
  'launch.claimed',
  'launch.prepare',
  'launch.helper',
  'launch.directory',
  'launch.spawn',
  'launch.settle',
  'launch.settled',
  'launch.unblock',
  'launch.runner',
  'launch.commit',
  'launch.adopt',
  'launch.capability',
  'launch.reply',
  // a launch that is given up
  'launch.undo',
  'launch.refuse',
  // a stop, and the end that every run has
  'stop.row',
  'stop.signal',
  'stop.wait',
  'stop.kill',
  'end.record',
  'end.recorded',
  'end.release',
  'end.released',
  // the stop of the host
  'host.doors',
  'host.sessions',
  'host.sockets',
  'host.stopped',
  // recovery, and the start that it is a part of
  'recover.kill',
  'recover.lock',
  'recover.traces',
  'recover.undo',
  'recover.end',
  'recover.ended',
  'recover.git',
  'host.listen',
  'host.started',
] as const
export type FailpointName = (typeof FAILPOINTS)[number]
export type Failpoint = AnyFailpoint<FailpointName>
