/** From which state to which: a table `as const satisfies Transitions<S>`, so that a forgotten state fails to compile. */
export type Transitions<State extends string> = Readonly<Record<State, readonly State[]>>

export const RUN_STATES = ['starting', 'running', 'stopping', 'ended'] as const
export type RunState = (typeof RUN_STATES)[number]

export const RUN_TRANSITIONS = {
  starting: ['running', 'ended'],
  running: ['stopping', 'ended'],
  stopping: ['ended'],
  ended: [],
} as const satisfies Transitions<RunState>

export const MESSAGE_STATES = ['accepted', 'delivered', 'acknowledged', 'answered', 'dead'] as const
export type MessageState = (typeof MESSAGE_STATES)[number]
