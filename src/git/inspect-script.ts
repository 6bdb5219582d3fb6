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
 * write, and sees the repository (GIT_DIR) and the main-only store read-only. Arguments: where the pack begins in `bundle` (from 1),
 * the tip, the work ref, bytes unpacked, KiB of memory, seconds of CPU, the strict checks, the main-only store. The file `allowed`:
 * `^OID` lines, the tips that the pusher may see. Standard input: the prerequisites. Standard output: `current OID|-`, the raw diff
 * lines that may be against our policy, `links`, and the links' targets as `cat-file --batch` gives them. Nothing that an agent
 * wrote is ever an argument or part of the script.
 *
 * An object of another task must look as if it did not exist: to be named is to be handed out by the next fetch, as a parent, as a
 * tree's entry or as a delta's base. So the pack is judged beside nothing but main and the history of what it builds on, which is
 * copied for that; a push that builds on main alone copies nothing.
 */
export const INSPECT_SCRIPT = String.raw`
set -u
offset=$1 tip=$2 ref=$3 unpacked=$4 memory=$5 cpu=$6 strict=$7 store=$8
ulimit -c 0 && ulimit -d "$memory" && ulimit -t "$cpu" || exit 70
own=$PWD/objects
seen=$store/objects
index() { tail -c "+$offset" bundle | GIT_OBJECT_DIRECTORY=$own GIT_ALTERNATE_OBJECT_DIRECTORIES=$seen git index-pack --stdin --fix-thin "$@"; }
both() { GIT_DIR=$store GIT_OBJECT_DIRECTORY=$own GIT_ALTERNATE_OBJECT_DIRECTORIES=$seen git "$@"; }

git cat-file --batch-check='%(objecttype) %(objectname)' >prerequisites || exit 70
sed -n 's/^commit //p' prerequisites >there
cat there allowed | git rev-list --stdin >beyond || exit 70
sort there >there.sorted && sort beyond >beyond.sorted && comm -23 there.sorted beyond.sorted >bases || exit 70
sed 's/^/commit /' bases >good || exit 70
grep -vxFf good prerequisites
case $? in
0) exit 10 ;;
1) ;;
*) exit 70 ;;
esac

main=$(GIT_DIR=$store git rev-parse --verify --quiet refs/heads/main) || exit 70
current=$(git rev-parse --verify --quiet "$ref") || current=-
[ "$current" = - ] || echo "$current" >>bases || exit 70
echo "^$main" >known && sed 's/^/^/' bases >>known || exit 70
if grep -qvxF "$main" bases; then
  mkdir -p seen/pack && { cat bases; echo "^$main"; } | GIT_OBJECT_DIRECTORY=$PWD/seen GIT_ALTERNATE_OBJECT_DIRECTORIES=$GIT_DIR/objects git -c core.fsync=none pack-objects --revs --non-empty -q --window=0 seen/pack/pack >/dev/null || exit 70
  seen=$seen:$PWD/seen
fi
lacking() {
  { echo "$tip"; cat known; } | both rev-list --objects --stdin >needed || return 0
  cut -c 1-40 needed >ids && GIT_OBJECT_DIRECTORY=$own git cat-file --batch-check='%(objecttype)' <ids >held || exit 70
  grep -m 1 ' missing$' held
  case $? in
  0) return 0 ;;
  1) return 1 ;;
  *) exit 70 ;;
  esac
}

index "--strict=$strict" >index
case $? in
0) ;;
153) exit 153 ;; # SIGXFSZ
*)
  # of what kind the failure is, is asked again without the checks; the words only name object and check
  index >/dev/null 2>&1 || exit 12
  lacking && exit 13
  exit 11
  ;;
esac
GIT_OBJECT_DIRECTORY=$own git cat-file --batch-all-objects --unordered --batch-check='%(objectsize)' >sizes || exit 70
sum=0
while read -r size; do sum=$((sum + size)); done <sizes
[ "$sum" -le "$unpacked" ] || exit 14

type=$(both cat-file -t "$tip") || exit 15
[ "$type" = commit ] || exit 16
lacking && exit 13

{ echo "$tip"; cat known; } | both log --format= --raw -c --root --no-abbrev --no-renames --no-ext-diff --no-show-signature --stdin >changes || exit 17
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
