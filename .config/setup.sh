# shellcheck shell=bash disable=SC2016 # the scripts given to sh take their arguments as $1
# Gets a clone ready to run, as a plain user (in place) or as root (in a copy that an unprivileged user owns: Mosaic never runs as root).
# Sourced by bin/quickstart, bin/test and .config/test-agents.sh, with the clone as the current directory. What they call:
#   set_up             installs what is missing, builds
#   as_user COMMAND…   runs a command in the built clone, as the user
#   with_npm COMMAND…  the same, for one that fetches packages
# What goes wrong is said in one line, and ends the script with status 1.

PROGRAM=bin/${0##*/}
if [[ $0 == *.config/* ]]; then PROGRAM=.config/${0##*/}; fi
CLONE=$(pwd -P)
WORK=$CLONE                        # where everything runs
USER_NAME=$(id -un)                # as whom
AS=()                              # puts a command into the unprivileged user's hands
SEARCH_PATH=$PATH                  # where the user's programs are found
CA_CERTS=${NODE_EXTRA_CA_CERTS-}   # for npm alone: it slows every start of Node
unset NODE_EXTRA_CA_CERTS
LOG=$(mktemp "${TMPDIR:-/tmp}/mosaic-setup.XXXXXX")
KEEP_LOG=
trap '[[ -n $KEEP_LOG ]] || rm -f "$LOG"' EXIT

say() { printf '%s: %s\n' "$PROGRAM" "$*" >&2; }
die() {
  say "$*"
  exit 1
}
is_root() { ((EUID == 0)); }
is_interactive() { [[ -z ${CI-} && -t 0 && -t 2 ]]; }
has() { PATH=$SEARCH_PATH command -v "$1" >/dev/null; }

# Descriptor 9 is the clone's lock (and the clone may be a place that the user must not see).
as_user_in() { (cd "$1" && shift && exec "${AS[@]}" "$@" 9<&-); }
as_user() { as_user_in "$WORK" "$@"; }

set_up() {
  check_node
  install_system_packages
  lock_clone
  if is_root; then
    choose_user
    lend_node
    copy_clone
  fi
  check_namespaces
  install_npm_packages
  as_user npm run --silent build || die 'the build failed: see above'
}

check_node() {
  local facts major minor
  has node || die 'Node.js is missing: install version 20.19 or newer (https://nodejs.org)'
  facts=$(node -p '[process.versions.node, process.versions.modules, process.execPath].join(" ")') || die "Node.js does not start ($(command -v node))"
  read -r NODE_VERSION NODE_ABI NODE <<<"$facts"
  IFS=. read -r major minor _ <<<"$NODE_VERSION"
  ((major > 20 || (major == 20 && minor >= 19))) || die "Node.js $NODE_VERSION is too old ($NODE): install 20.19 or newer (https://nodejs.org)"
  has npm || die "npm is missing: install it (with Debian's own Node: apt-get install npm)"
  NPM=$(command -v npm)
  if is_root; then SEARCH_PATH=${NODE%/*}:${NPM%/*}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin; fi
}

# More programs that the caller needs, as program:package.
MORE_PROGRAMS=()

install_system_packages() {
  local missing=() pair
  has bwrap || missing+=(bubblewrap)
  has git || missing+=(git)
  { has flock && has setpriv; } || missing+=(util-linux)
  for pair in "${MORE_PROGRAMS[@]}"; do
    has "${pair%%:*}" || missing+=("${pair#*:}")
  done
  if ((${#missing[@]} > 0)); then apt_install "${missing[@]}"; fi
}

# apt_install PACKAGE…: asks in a terminal, says so elsewhere.
apt_install() {
  local sudo=() answer
  if ! has apt-get; then die "missing: $*; install what holds them on this system (the names are Debian's)"; fi
  if ! is_root; then
    if ! has sudo || { ! is_interactive && ! sudo -n true 2>/dev/null; }; then die "missing: $*; as root: apt-get install $*"; fi
    sudo=(sudo)
  fi
  say "missing: $*; installing with apt-get"
  if is_interactive; then
    read -r -p "Install the Debian packages $* now? [Y/n] " answer
    [[ -z $answer || $answer == [yY]* ]] || die "missing: $*; as root: apt-get install $*"
  fi
  local install=("${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@")
  # A fresh system has no lists yet; old lists name packages that are gone.
  if ! "${install[@]}" >"$LOG" 2>&1 </dev/null; then
    "${sudo[@]}" apt-get update -qq >"$LOG" 2>&1 </dev/null || true
    "${install[@]}" >>"$LOG" 2>&1 </dev/null || fail_with_log "apt-get could not install $*"
  fi
}

# fail_with_log WHAT: one line, with the last error in the log.
fail_with_log() {
  KEEP_LOG=yes
  die "$1: $(grep -E '^(E:|npm error|npm ERR!|gyp ERR!)' "$LOG" | grep -vE 'A complete log|code [A-Z0-9]+$' | head -n 1 || true) (log: $LOG)"
}

lock_clone() {
  exec 9<"$CLONE"
  flock -n 9 && return
  say "another run in $CLONE is at work: waiting for it"
  flock 9
}

# ---- root alone ----

choose_user() {
  local name=${MOSAIC_USER:-mosaic} uid
  # shellcheck disable=SC2034 # read by bin/quickstart
  USER_NAME=$name
  umask 022
  if ! id -u "$name" >/dev/null 2>&1; then
    [[ -z ${MOSAIC_USER-} ]] || die "MOSAIC_USER=$name: there is no such user"
    say 'creating the unprivileged user mosaic (home: /var/lib/mosaic)'
    useradd --system --user-group --create-home --home-dir /var/lib/mosaic --shell /bin/bash mosaic || die 'useradd could not create the user mosaic: name another with MOSAIC_USER'
  fi
  uid=$(id -u "$name")
  ((uid != 0)) || die "MOSAIC_USER=$name is root: name an unprivileged user"
  USER_HOME=$(getent passwd "$name" | cut -d: -f6)
  AS=(setpriv --reuid "$uid" --regid "$(id -g "$name")" --init-groups env -i HOME="$USER_HOME" USER="$name" LOGNAME="$name" SHELL=/bin/bash
    PATH="$SEARCH_PATH" LANG="${LANG:-C.UTF-8}" TERM="${TERM:-dumb}")
  if [[ -n ${CI-} ]]; then AS+=(CI="$CI"); fi
  as_user_in / test -w "$USER_HOME" || die "the user $name cannot write to its home $USER_HOME: name another with MOSAIC_USER"
}

# Node may lie where the user cannot run it (~root/.nvm): then it gets a copy.
lend_node() {
  local npm_package lent=$USER_HOME/.cache/mosaic/node-$NODE_VERSION paths=()
  if as_user_in / "$NODE" -e 0 2>/dev/null && as_user_in / "$NPM" --version >/dev/null 2>&1; then return; fi
  npm_package=$(dirname "$(dirname "$(readlink -f "$NPM")")")
  AS+=(PATH="$lent/bin:$SEARCH_PATH")
  if ! as_user_in / "$lent/bin/npm" --version >/dev/null 2>&1; then
    say "the user cannot run $NODE: giving it a copy"
    if [[ -d ${NODE%/bin/node}/include/node ]]; then paths+=(-C "${NODE%/bin/node}" include/node); fi
    tar -cf - --transform 's,^node$,bin/node,;s,^npm/,lib/node_modules/npm/,' -C "${NODE%/*}" node "${paths[@]}" -C "${npm_package%/*}" npm |
      as_user_in / sh -c 'mkdir -p "$1" && tar -xf - -C "$1" && ln -sf ../lib/node_modules/npm/bin/npm-cli.js "$1/bin/npm" && "$1/bin/npm" --version >/dev/null' sh "$lent" ||
      die "the user cannot run $NODE: install Node.js in /usr/local, or name a user who can with MOSAIC_USER"
  fi
  NODE=$lent/bin/node
}

# Always in a copy: the user can seldom write to root's clone, and may not even see it. What git ignores stays behind.
copy_clone() {
  WORK=$USER_HOME/.cache/mosaic/$(printf %s "$CLONE" | sha256sum | cut -c 1-12)
  list_files | tar -C "$CLONE" --null --no-recursion -T - -cf - | as_user_in / sh -c '
    set -e
    rm -rf "$1.new" "$1.old"
    mkdir -p "$1.new"
    tar -xf - -C "$1.new"
    for kept in node_modules dist .agents; do
      if [ -e "$1/$kept" ]; then mv "$1/$kept" "$1.new/"; fi
    done
    if [ -e "$1" ]; then mv "$1" "$1.old"; fi
    mv "$1.new" "$1"
    rm -rf "$1.old"' sh "$WORK" || die "could not copy $CLONE to $WORK"
}

# The files of the clone as they are now, NUL-separated.
list_files() {
  local file
  cd "$CLONE" || return
  if [[ -e .git ]]; then
    # shellcheck disable=SC2046 # names without spaces
    unset $(git rev-parse --local-env-vars)
    git -c safe.directory="$CLONE" -c core.fsmonitor=false ls-files -z --cached --others --exclude-standard
  else
    find . \( -name node_modules -o -name dist -o -name .agents \) -prune -o \( -type f -o -type l \) -print0
  fi | while IFS= read -r -d '' file; do
    if [[ -e $file || -L $file ]]; then printf '%s\0' "$file"; fi
  done
}

# ---- as the user ----

check_namespaces() {
  local words remedy='this container or kernel forbids them (Docker: --security-opt seccomp=unconfined --security-opt systempaths=unconfined)'
  words=$(as_user bwrap --unshare-user --unshare-pid --ro-bind / / --proc /proc true 2>&1) && return
  if [[ $(sysctl_value kernel/apparmor_restrict_unprivileged_userns) == 1 ]]; then
    remedy='AppArmor forbids them; allow bwrap a profile with userns, or: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0'
  elif [[ $(sysctl_value kernel/unprivileged_userns_clone) == 0 ]]; then
    remedy='allow them: sysctl -w kernel.unprivileged_userns_clone=1'
  elif [[ $(sysctl_value user/max_user_namespaces) == 0 ]]; then
    remedy='allow them: sysctl -w user.max_user_namespaces=10000'
  fi
  die "bwrap cannot make user namespaces (${words##*$'\n'}): $remedy"
}
sysctl_value() { cat "/proc/sys/$1" 2>/dev/null || true; }

install_npm_packages() {
  local wanted stamp=node_modules/.mosaic-installed
  wanted="$(sha256sum <"$CLONE/package-lock.json" | cut -c 1-64) node-abi-$NODE_ABI"
  if [[ $(as_user cat "$stamp" 2>/dev/null) == "$wanted" ]] && sqlite_loads; then return; fi
  as_user test -w . || die "cannot write to $WORK: clone it to a place of your own"
  say 'installing the npm packages (a minute or two where better-sqlite3 has to be compiled)'
  npm_ci || install_compiler
  sqlite_loads || die "$(explain_sqlite)"
  as_user sh -c 'printf "%s\n" "$1" >"$2"' sh "$wanted" "$stamp"
}
sqlite_loads() { as_user node -e 'new (require("better-sqlite3"))(":memory:")' >/dev/null 2>&1; }

# Debian's npm compiles with the headers of Debian's own Node, whichever Node runs it; what comes of that aborts at its first use.
explain_sqlite() {
  local used
  used=$(as_user sed -n 's/^ *"nodedir": "\(.*\)",$/\1/p' node_modules/better-sqlite3/build/config.gypi 2>/dev/null) || true
  if [[ -n $used && -z $(node_headers) ]]; then
    printf '%s' "better-sqlite3 was compiled with the headers in $used, which are not those of Node.js $NODE_VERSION ($NODE): take Node.js, with npm and its headers, from nodejs.org"
  else
    printf '%s' 'better-sqlite3 does not load after npm ci: is ignore-scripts set (npm config get ignore-scripts)?'
  fi
}

npm_ci() { with_npm npm ci --no-audit --no-fund >"$LOG" 2>&1 </dev/null; }

# with_npm COMMAND…: the user has neither root's npm settings nor its variables.
with_npm() {
  local environment=() headers key value
  headers=$(node_headers)
  if is_root; then
    while IFS='=' read -r key value; do
      if [[ -n $value && $value != null && $value != undefined ]]; then environment+=("npm_config_${key//-/_}=$value"); fi
    done < <(npm config get registry cafile strict-ssl proxy https-proxy noproxy nodedir 2>/dev/null)
    for key in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY SSL_CERT_FILE SSL_CERT_DIR; do
      if [[ -n ${!key-} ]]; then environment+=("$key=${!key}"); fi
    done
  fi
  if [[ -n $headers ]]; then environment+=("npm_config_nodedir=$headers"); fi
  if [[ -n $CA_CERTS ]]; then environment+=("NODE_EXTRA_CA_CERTS=$CA_CERTS"); fi
  as_user env "${environment[@]}" "$@"
}

# The prefix whose include/node belongs to this Node; without one node-gyp wants the headers from the network.
node_headers() {
  local prefix=${NODE%/bin/node}
  if grep -qsx "#define NODE_MAJOR_VERSION ${NODE_VERSION%%.*}" "$prefix/include/node/node_version.h"; then printf '%s' "$prefix"; fi
}

# After a failed npm ci: where no ready-made better-sqlite3 could be downloaded, it has to be compiled.
install_compiler() {
  local missing=() candidate
  grep -qE 'gyp ERR|prebuild-install|better-sqlite3' "$LOG" || fail_with_log 'npm ci failed'
  { has make && has g++; } || missing+=(build-essential)
  has python3 || missing+=(python3)
  if [[ -z $(node_headers) ]] && has apt-cache; then
    candidate=$(apt-cache policy libnode-dev 2>/dev/null | sed -n 's/^ *Candidate: //p')
    if [[ $NODE == /usr/bin/node && $candidate == "${NODE_VERSION%%.*}".* ]]; then missing+=(libnode-dev); fi
  fi
  if ((${#missing[@]} > 0)); then
    apt_install "${missing[@]}"
    npm_ci && return
  fi
  if [[ -z $(node_headers) ]]; then
    fail_with_log "better-sqlite3 could not be compiled: no headers of Node.js $NODE_VERSION in ${NODE%/bin/node}/include/node (take Node from nodejs.org, or Debian's libnode-dev)"
  fi
  fail_with_log 'better-sqlite3 could not be compiled'
}
