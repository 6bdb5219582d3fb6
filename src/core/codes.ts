/** How a code is answered: the CLI's exit status, whether trying again later can help, and the fixed text an agent's tool shows. */
interface CodeEntry {
  readonly exit: 0 | 1 | 2 | 3 | 4 | 5 | 6 | 10 | 11 | 12 | 124 | 130
  readonly retry: boolean
  readonly text: string
}

/** The one table of codes: docs, `mosaic help codes` and every exit status come from it. A refused launch exits 3 whatever its code. */
export const CODES = {
  // any socket
  'invalid-request': { exit: 2, retry: false, text: 'the request is not one that this socket understands' },
  unauthenticated: { exit: 5, retry: false, text: 'the capability is not that of a live run' },
  'protocol-mismatch': { exit: 12, retry: false, text: 'the two sides speak different versions of the protocol' },
  'too-many-requests': { exit: 1, retry: true, text: 'too many requests are in flight on this connection' },
  'too-many-connections': { exit: 1, retry: true, text: 'too many connections are open' },
  'too-many-records': { exit: 1, retry: true, text: 'this run has had as much recorded as an hour allows' },
  busy: { exit: 1, retry: true, text: 'somebody else is at it; try again' },
  internal: { exit: 1, retry: false, text: 'the bus host failed; its log says how' },
  // the gate
  'instance-not-listed': { exit: 3, retry: false, text: 'the instance is not in launch.instances' },
  'instance-running': { exit: 3, retry: true, text: 'the instance has a session already' },
  'unknown-model-family': { exit: 3, retry: false, text: 'no family has a pattern for the model' },
  'capacity-full': { exit: 3, retry: true, text: 'the model family has no free slot' },
  'rate-limited': { exit: 3, retry: true, text: 'the provider limits this model family for now' },
  'budget-spent': { exit: 3, retry: true, text: 'the budget is spent' },
  'harness-missing': { exit: 3, retry: false, text: "the instance's agent program is not installed" },
  'no-session-credential': { exit: 3, retry: false, text: 'the bus host holds no credential for this harness' },
  'sandbox-unavailable': { exit: 3, retry: false, text: 'the sandbox does not work on this machine' },
  'disk-full': { exit: 3, retry: true, text: 'there is too little free disk space' },
  'limits-unavailable': { exit: 3, retry: false, text: 'the limits that the role requires cannot be enforced here' },
  'host-stopping': { exit: 3, retry: true, text: 'the bus host is stopping' },
  'not-permitted': { exit: 5, retry: false, text: 'the role lacks the right to do this' },
  // a launch's steps
  'env-root-busy': { exit: 3, retry: true, text: 'the env root is held by a running execution' },
  'env-root-foreign': { exit: 3, retry: false, text: 'the env root belongs to another instance' },
  'env-root-unowned': { exit: 3, retry: false, text: 'the env root has content and no owner' },
  'env-root-unsafe': { exit: 3, retry: false, text: 'something in the env root is not what it must be' },
  'env-root-unsaved': { exit: 3, retry: false, text: 'the env root holds work that would be lost' },
  'env-root-swapped': { exit: 3, retry: true, text: 'the env root was replaced during the launch' },
  'checkout-failed': { exit: 3, retry: false, text: 'the project could not be checked out' },
  'prepare-timeout': { exit: 3, retry: true, text: 'preparing the workspace took too long' },
  'tool-timeout': { exit: 3, retry: true, text: 'a tool took too long while preparing the workspace' },
  'spawn-failed': { exit: 3, retry: true, text: 'the sandbox could not be started' },
  'sandbox-mismatch': { exit: 3, retry: false, text: 'the sandbox was not what it was planned to be' },
  // the model gateway
  'model-not-allowed': { exit: 5, retry: false, text: "the request names a model that is not the session's" },
  'body-too-big': { exit: 2, retry: false, text: 'the body of the request is too big' },
  'provider-unreachable': { exit: 1, retry: true, text: 'the model provider did not answer as it should' },
  // roles and messages
  'role-held': { exit: 1, retry: true, text: 'another run holds the role' },
  'unknown-recipient': { exit: 4, retry: false, text: 'no instance of that name' },
  'mailbox-full': { exit: 1, retry: true, text: 'the recipient has too many unread messages of this run' },
  'not-owed': { exit: 6, retry: false, text: 'no open REQUEST to this instance has that id' },
  'message-not-found': { exit: 4, retry: false, text: 'no message has that id' },
  'reserved-kind': { exit: 5, retry: false, text: 'only the host writes records of that kind' },
  // tasks, reviews, git
  'task-not-found': { exit: 4, retry: false, text: 'no task has that id' },
  'task-exists': { exit: 6, retry: false, text: 'a task has that id already' },
  'task-closed': { exit: 6, retry: false, text: 'the task is closed' },
  'project-not-found': { exit: 4, retry: false, text: 'no project has that id' },
  'push-not-found': { exit: 4, retry: false, text: 'no push has that id' },
  'request-not-found': { exit: 4, retry: false, text: 'no review request has that id' },
  'not-approved': { exit: 6, retry: false, text: "the task's latest push has no approving verdict" },
  'not-fast-forward': { exit: 6, retry: false, text: 'the push does not continue the current tip of the task' },
  'branch-checked-out': { exit: 6, retry: false, text: 'the branch is checked out' },
  'own-work': { exit: 6, retry: false, text: 'a reviewer may not judge its own work' },
  'already-judged': { exit: 6, retry: false, text: 'the review request has its verdict' },
  stale: { exit: 6, retry: false, text: 'a later push has replaced the one under review' },
  'wrong-project': { exit: 6, retry: false, text: 'the task belongs to another project' },
  'fsck-failed': { exit: 6, retry: false, text: 'an object of the push is malformed or not allowed' },
  'bundle-invalid': { exit: 6, retry: false, text: 'the bytes are no bundle that the host takes' },
  'bundle-too-big': { exit: 6, retry: false, text: 'the push is larger than the limits allow' },
  'missing-prerequisites': { exit: 6, retry: false, text: 'the bundle builds on commits that the repository lacks' },
  'unrelated-history': { exit: 6, retry: false, text: 'the commit shares no history with main' },
  'bad-destination': { exit: 6, retry: false, text: 'a push goes to the id of a task and to nothing else' },
  // the founder's side
  usage: { exit: 2, retry: false, text: 'the command line is not one that mosaic understands' },
  'business-ambiguous': { exit: 2, retry: false, text: 'more than one business is configured' },
  'config-invalid': { exit: 3, retry: false, text: 'the configuration is not valid' },
  'config-exists': { exit: 3, retry: false, text: 'the file is there already' },
  'config-not-found': { exit: 3, retry: false, text: 'there is no configuration' },
  'business-not-found': { exit: 4, retry: false, text: 'no business has that id' },
  'key-not-found': { exit: 4, retry: false, text: 'the configuration sets no such key' },
  'run-not-found': { exit: 4, retry: false, text: 'no run has that id' },
  'run-ambiguous': { exit: 2, retry: false, text: 'more than one run begins like that' },
  'instance-not-found': { exit: 4, retry: false, text: 'no instance has that name' },
  'record-not-found': { exit: 4, retry: false, text: 'the launch log has no entry of that number' },
  'env-not-found': { exit: 4, retry: false, text: 'there is no env root of that name' },
  'not-running': { exit: 4, retry: false, text: 'it does not run' },
  'runs-as-root': { exit: 3, retry: false, text: 'the bus host never runs as root' },
  'user-not-found': { exit: 4, retry: false, text: 'this machine has no user of that name' },
  'data-root-unsafe': { exit: 3, retry: false, text: 'the data root is not a private directory of this user' },
  'socket-path-too-long': { exit: 3, retry: false, text: "the data root's path is too long for a Unix socket" },
  'data-root-not-empty': { exit: 3, retry: false, text: 'a restore goes into an absent or empty data root alone' },
  'backup-invalid': { exit: 3, retry: false, text: 'the file is no backup that this version can restore' },
  'store-not-found': { exit: 4, retry: false, text: 'the data root holds no store' },
  'store-unreadable': { exit: 3, retry: false, text: 'the store cannot be read' },
  'store-corrupt': { exit: 3, retry: false, text: 'the store is damaged' },
  'store-lost': { exit: 3, retry: false, text: 'the store is missing although it was there' },
  'store-newer': { exit: 3, retry: false, text: 'the store is from a newer version' },
  'trail-broken': { exit: 3, retry: false, text: 'the hash chain of the trail is broken' },
  'trail-mismatch': { exit: 1, retry: false, text: 'the trail does not end in the head given' },
  'host-not-running': { exit: 10, retry: true, text: 'the bus host is not running' },
  'host-running': { exit: 11, retry: false, text: 'another bus host holds this data root' },
  'program-missing': { exit: 12, retry: false, text: 'a program that is needed is not installed' },
  'kernel-unsupported': { exit: 12, retry: false, text: 'the kernel lacks a feature that is needed' },
  timeout: { exit: 124, retry: true, text: 'it took longer than was waited for' },
  interrupted: { exit: 130, retry: true, text: 'it was interrupted' },
} as const satisfies Readonly<Record<string, CodeEntry>>

export type ErrorCode = keyof typeof CODES

/** Is this string one of the table's codes? Own keys only, so `constructor` is none. */
export const isErrorCode = (value: string): value is ErrorCode => Object.hasOwn(CODES, value)
