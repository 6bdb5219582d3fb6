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
  'launch.state',
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

/** The same for a push, a verdict and a close, at which test/e2e/git-failpoints.test.ts lets hosts die; git and bus pass them by name. */
export const GIT_FAILPOINTS = [
  // a push: packs moved, ref moved, row written, transaction committed, reply
  'push.objects',
  'push.ref',
  'push.row',
  'push.commit',
  'push.reply',
  // a verdict, with the ref that an approval sets, and the close that it allows
  'verdict.commit',
  'review.ref',
  'verdict.reply',
  'close.commit',
  'close.reply',
] as const
export type GitFailpointName = (typeof GIT_FAILPOINTS)[number]
