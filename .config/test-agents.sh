#!/usr/bin/env bash
# Sets up as bin/test does, fetches the real agent programs (0.6 GB from npm, once) and runs test/agents. The last line is "N passed, N failed".
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."
# shellcheck source=.config/setup.sh
source .config/setup.sh

set_up
with_npm npm run --silent agents || die 'the agent programs could not be fetched: see above'
results=node_modules/.cache/vitest-agents.json
as_user rm -f "$results"
status=0
as_user npm run --silent test:agents -- --reporter=default --reporter=json --outputFile.json="$results" || status=$?
as_user test -e "$results" || die 'vitest wrote no results: see above'
as_user node .config/closing-line.mjs "$results"
exit "$status"
