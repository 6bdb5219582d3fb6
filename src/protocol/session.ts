import { z } from 'zod'

/** session.json: what the runner must know; no secret. Paths are the same inside and outside the sandbox. */
export const sessionFileSchema = z.strictObject({
  run: z.string(),
  instance: z.string(),
  role: z.string(),
  business: z.string(),
  task: z.string().nullable(),
  founder: z.string(),
  launchedBy: z.string(),
  harness: z.string(),
  model: z.string(),
  grants: z.array(z.string()),
  tools: z.array(z.string()),
  brokerSocket: z.string(),
  launchSocket: z.string().nullable(),
  gitSocket: z.string().nullable(),
  modelSocket: z.string().nullable(),
  workspace: z.string(),
  home: z.string(),
  state: z.string(),
  /** The read-only bundle: prompt.md, project.json, runner.cjs. */
  bundle: z.string(),
  /** Does the harness go on with an earlier conversation? */
  resumed: z.boolean(),
  projects: z.array(z.strictObject({ id: z.string(), path: z.string(), branch: z.string(), kept: z.string().nullable() })),
  brokerTries: z.int(),
  brokerRetryMs: z.int(),
})
export type SessionFile = z.infer<typeof sessionFileSchema>

/** The runner's standard input: line 1 the capability, line 2 this, then nothing. */
export const sessionSecretsSchema = z.strictObject({
  credentials: z.array(
    z.strictObject({
      name: z.string(),
      /** The variable that the harness finds the value in. */
      env: z.string(),
      /** null: the host could not resolve the reference. */
      value: z.string().nullable(),
      expires: z.string().nullable(),
    }),
  ),
})
export type SessionSecrets = z.infer<typeof sessionSecretsSchema>
