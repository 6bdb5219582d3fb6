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
  /** It could not be asked. */
  failed: 70,
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
 * All questions about a push in one sandbox, since starting one costs more than asking; and in few programs, since starting those is
 * the rest. It runs in the quarantine, which it may write, and sees the repository (GIT_DIR) and the main-only store read-only.
 * Arguments: bytes unpacked, KiB of memory, seconds of CPU, the strict checks, the main-only store, main, and a tip whose history the
 * push will likely build on, or nothing: that is copied before it is known what is pushed. Standard input: the tip, where the work ref
 * is (`-`: nowhere), main and a word, then the prerequisites. `known`: each is a tip that the pusher may see. Else they are judged
 * here: the file `allowed` names those tips, as `^OID` lines. Standard output: `changes`, the raw diff lines that may be against our
 * policy, `links`, and the links' targets as `cat-file --batch` gives them. Nothing that an agent wrote is ever an argument or part of
 * the script.
 *
 * An object of another task must look as if it did not exist: to be named is to be handed out by the next fetch, as a parent, as a
 * tree's entry or as a delta's base. So the pack is judged beside nothing but main and the history of what it builds on, which is
 * copied for that; a push that builds on main alone copies nothing.
 */
export const INSPECT_SCRIPT = String.raw`
set -u
unpacked=$1 memory=$2 cpu=$3 strict=$4 store=$5 main=$6 likely=$7
ulimit -c 0 && ulimit -d "$memory" && ulimit -t "$cpu" || exit 70
own=$PWD/objects
seen=$store/objects
# the pack is what follows the header and its empty line
index() {
  {
    while IFS= read -r line && [ -n "$line" ]; do :; done
    GIT_OBJECT_DIRECTORY=$own GIT_ALTERNATE_OBJECT_DIRECTORIES=$seen git index-pack --stdin --fix-thin "$@"
  } <bundle
}
both() { GIT_DIR=$store GIT_OBJECT_DIRECTORY=$own GIT_ALTERNATE_OBJECT_DIRECTORIES=$seen git "$@"; }

copy() {
  GIT_OBJECT_DIRECTORY=$PWD/seen GIT_ALTERNATE_OBJECT_DIRECTORIES=$GIT_DIR/objects git -c core.fsync=none pack-objects --revs --non-empty -q --window=0 seen/pack/pack >/dev/null || exit 70
  seen=$store/objects:$PWD/seen
}
if [ -n "$likely" ]; then
  printf '%s\n^%s\n' "$likely" "$main" >history && copy <history
fi

read -r tip current main prerequisites || exit 70
if [ "$prerequisites" = known ]; then
  while read -r oid; do echo "$oid"; done >bases
else
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
fi
[ "$current" = - ] || echo "$current" >>bases || exit 70

# what is walked: the new commits, and the history that they build on
foreign=
{
  printf '%s\n^%s\n' "$tip" "$main" && echo "^$main" >&3
  while read -r oid; do
    echo "^$oid" && echo "$oid" >&3
    [ "$oid" = "$main" ] || [ "$oid" = "$likely" ] || foreign=1
  done <bases
} >new 3>history
[ -z "$foreign" ] || copy <history
follow() {
  both rev-list --objects --no-object-names --stdin <new >needed 2>unreachable &
  following=$!
}
hold() { GIT_OBJECT_DIRECTORY=$own git cat-file --batch-all-objects --batch-check='%(objectname) %(objecttype) %(objectsize)' >held || exit 70; }
lacking() {
  wait "$following" || {
    cat unreachable >&2
    return 0
  }
  # of few it is told without another program
  if [ "$count" -le 100 ]; then
    while read -r oid; do
      case $few in
      *"$oid"*) ;;
      *) echo "$oid missing" && return 0 ;;
      esac
    done <needed
    return 1
  fi
  sort needed | comm -23 - ids >lack || exit 70
  read -r first <lack || return 1
  echo "$first missing"
}
# of all objects the ids, in order, and the sum of their sizes; of the tip its type
sum=0 type= count=0 few=
add() {
  while read -r oid kind size; do
    echo "$oid"
    sum=$((sum + size)) count=$((count + 1))
    [ "$count" -le 100 ] && few="$few $oid"
    [ "$oid" = "$tip" ] && type=$kind
  done <held >ids
}

index "--strict=$strict" >index
case $? in
0) ;;
153) exit 153 ;; # SIGXFSZ
*)
  # of what kind the failure is, is asked again without the checks; the words only name object and check
  index >/dev/null 2>&1 || exit 12
  follow
  hold && add
  lacking && exit 13
  exit 11
  ;;
esac
follow
both log --format='parents %P' --raw -c --root --no-abbrev --no-renames --no-ext-diff --no-show-signature --stdin <new >changes 2>unlisted &
listing=$!
hold && add
[ "$sum" -le "$unpacked" ] || exit 14

[ -n "$type" ] || type=$(both cat-file -t "$tip") || exit 15
[ "$type" = commit ] || exit 16
lacking && exit 13

wait "$listing" || {
  cat unlisted >&2
  exit 17
}
echo changes
grep -aiE '^:[^	]* (160000|120000) |gitmod' changes >suspects && cat suspects
echo links
if [ -s suspects ]; then
  grep -a '^:[^	]* 120000 ' suspects | sed -E 's/^[^	]* ([0-9a-f]{40}) [A-Z]+	.*$/\1/' | sort -u | both cat-file --batch
fi

# the first line is of the tip: mostly its parent is what the push must build on, and git need not be asked
link=$current parents=
[ "$current" = - ] && link=$main
read -r word parents <changes
case " $parents " in *" $link "*) exit 0 ;; esac
# what continues a tip that was judged shares its history
[ "$current" != - ] && both merge-base --is-ancestor "$current" "$tip" && exit 0
both merge-base "$tip" refs/heads/main >/dev/null || exit 18
[ "$current" = - ] || exit 19
exit 0
`
