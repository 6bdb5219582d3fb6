/** How the script ended: which question about a push got which answer. */
export const INSPECT_EXIT = {
  ok: 0,
  missingPrerequisites: 10,
  refusedByChecks: 11,
  unreadablePack: 12,
  notConnected: 13,
  tooBig: 14,
  tipMissing: 15,
  tipNoCommit: 16,
  unlistable: 17,
  unrelated: 18,
  notForward: 19,
} as const

/** What git itself only reports, as errors: `index-pack --strict` already makes errors of its warnings. git-fsck(1) */
export const STRICT_CHECKS = [
  'badFilemode',
  'gitmodulesParse',
  'gitignoreSymlink',
  'gitattributesSymlink',
  'mailmapSymlink',
  'badTagName',
  'missingTaggerEntry',
]
  .map((check) => `${check}=error`)
  .join(',')

/**
 * All questions about a push in one sandbox, since starting one costs more than asking. It runs in the quarantine, which it may
 * write, and sees the repository (GIT_DIR) read-only. Arguments: where the pack begins in `bundle` (from 1), the tip, the work
 * ref, bytes unpacked, KiB of memory, seconds of CPU, the strict checks. Standard input: the prerequisites. Standard output:
 * `current OID|-`, the raw diff lines that may be against our policy, `links`, and the links' targets as `cat-file --batch`
 * gives them. Nothing that an agent wrote is ever an argument or part of the script.
 */
export const INSPECT_SCRIPT = String.raw`
set -u
offset=$1 tip=$2 ref=$3 unpacked=$4 memory=$5 cpu=$6 strict=$7
ulimit -c 0 && ulimit -d "$memory" && ulimit -t "$cpu" || exit 70
own=$PWD/objects
index() { tail -c "+$offset" bundle | GIT_OBJECT_DIRECTORY=$own GIT_ALTERNATE_OBJECT_DIRECTORIES=$GIT_DIR/objects git index-pack --stdin --fix-thin "$@"; }
both() { GIT_OBJECT_DIRECTORY=$own GIT_ALTERNATE_OBJECT_DIRECTORIES=$GIT_DIR/objects git "$@"; }

git cat-file --batch-check='%(objecttype) %(objectname)' >prerequisites || exit 70
grep -v '^commit ' prerequisites && exit 10

index "--strict=$strict" >index
case $? in
0) ;;
153) exit 153 ;; # SIGXFSZ
*)
  # of what kind the failure is, is asked again without the checks; the words only name object and check
  index >/dev/null 2>&1 || exit 12
  both rev-list --objects --quiet "$tip" --not --all 2>&1 >/dev/null || exit 13
  exit 11
  ;;
esac
GIT_OBJECT_DIRECTORY=$own git cat-file --batch-all-objects --unordered --batch-check='%(objectsize)' >sizes || exit 70
sum=0
while read -r size; do sum=$((sum + size)); done <sizes
[ "$sum" -le "$unpacked" ] || exit 14

type=$(both cat-file -t "$tip") || exit 15
[ "$type" = commit ] || exit 16
both rev-list --objects --quiet "$tip" --not --all || exit 13

both log --format= --raw -c --root --no-abbrev --no-renames --no-ext-diff --no-show-signature "$tip" --not --all >changes || exit 17
current=$(git rev-parse --verify --quiet "$ref") || current=-
echo "current $current"
grep -aiE '^:[^	]* (160000|120000) |gitmod' changes >suspects && cat suspects
echo links
if [ -s suspects ]; then
  grep -a '^:[^	]* 120000 ' suspects | sed -E 's/^[^	]* ([0-9a-f]{40}) [A-Z]+	.*$/\1/' | sort -u | both cat-file --batch
fi

# what continues a tip that was judged shares its history
[ "$current" != - ] && both merge-base --is-ancestor "$current" "$tip" && exit 0
both merge-base "$tip" refs/heads/main >/dev/null || exit 18
[ "$current" = - ] || exit 19
exit 0
`
