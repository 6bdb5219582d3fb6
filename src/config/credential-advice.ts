/** How a person makes the credential that agent programs ask their model with; the bus host alone holds it. A sentence each. */
export const CREDENTIAL_ADVICE: readonly string[] = [
  'with a Claude subscription: run claude setup-token, and set CLAUDE_CODE_OAUTH_TOKEN to what it prints',
  'with an API account: make a key at https://console.anthropic.com, and set ANTHROPIC_API_KEY to it',
  'with another provider of the same API: set ANTHROPIC_BASE_URL and ANTHROPIC_AUTH_TOKEN',
]
