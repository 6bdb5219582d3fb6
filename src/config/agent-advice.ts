/** How a person gets an agent program, by harness. */
export const INSTALL_ADVICE: Readonly<Record<string, string>> = {
  'claude-code': 'npm install -g @anthropic-ai/claude-code',
  pi: 'npm install -g @earendil-works/pi-coding-agent',
}

/** How a person makes the credential that agent programs ask their model with; the bus host alone holds it. A sentence each. */
export const CREDENTIAL_ADVICE: readonly string[] = [
  'with a Claude subscription: run claude setup-token, and set CLAUDE_CODE_OAUTH_TOKEN to what it prints',
  'with an API account: make a key at https://console.anthropic.com, and set ANTHROPIC_API_KEY to it',
  'with another provider of the same API: set ANTHROPIC_BASE_URL and ANTHROPIC_AUTH_TOKEN',
  'set it where the bus host starts: in the shell of mosaic bus start, or in the file that mosaic service install makes',
]
