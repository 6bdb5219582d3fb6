#!/usr/bin/env bash
# What `mosaic doctor` says on a healthy machine and on broken ones, word for word. Each breakage is a real one, undone afterwards; its last line is
# the exit status. Exit 1 when a broken machine is called healthy, a healthy one broken, or the code that is expected is missing.
# shellcheck source=.config/machine/inside.sh
source "$(dirname "$0")/inside.sh"

# examine TITLE CODE CATEGORY…: CODE is what must be named; `none`, that nothing may fail.
examine() {
  local title=$1 code=$2 out status=0
  shift 2
  out=$(as_ada mosaic doctor "$@" 2>&1) || status=$?
  say '' "== $title" "\$ mosaic doctor $*"
  say "$out" "exit $status"
  if [[ $code == none ]]; then ((status == 0)) || die "called broken: $title"; else
    ((status == 1)) || die "not called broken: $title"
    [[ $out == *"[$code]"* ]] || die "$code is not named: $title"
  fi
}
say() { printf '%s\n' "$@"; }

# Gives a sysctl a value as long as COMMAND runs.
with_sysctl() {
  local file=/proc/sys/${1//.//} value=$2 before
  shift 2
  before=$(cat "$file")
  echo "$value" >"$file"
  "$@"
  echo "$before" >"$file"
}

in_docker() { docker run --rm --network none -v /usr:/usr:ro -v /etc:/etc:ro -v /opt:/opt:ro -v /home/$USER_NAME:/home/$USER_NAME -u "$(id -u $USER_NAME):$(id -g $USER_NAME)" -e HOME=/home/$USER_NAME -e PATH=/usr/local/bin:/usr/bin "$@"; }
docker_doctor() {
  local title=$1 expected=$2 status=0 out
  shift 2
  out=$(in_docker "$@" nothing mosaic doctor sandbox kernel 2>&1) || status=$?
  say '' "== $title" '$ mosaic doctor sandbox kernel' "$out" "exit $status"
  ((status == expected)) || die "exit $status: $title"
}

say "$(sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' /etc/os-release), $(uname -r), $(bwrap --version), $(git --version), node $(node --version)"
write_config
ln -sf /opt/mosaic/bin/mosaic.js /usr/local/bin/mosaic

as_ada mosaic bus start --detach --pm >/dev/null
examine 'a healthy machine, the bus host running' none
as_ada mosaic bus stop >/dev/null

mv /usr/bin/bwrap /usr/bin/bwrap.away
examine 'no bubblewrap' sandbox-unavailable sandbox
mv /usr/bin/bwrap.away /usr/bin/bwrap

mkdir -p /opt/old
printf '#!/bin/sh\necho "bwrap: Unknown option --disable-userns" >&2\nexit 1\n' >/opt/old/bwrap
chmod 755 /opt/old/bwrap
as_ada sh -c 'echo "sandbox: { bwrap: /opt/old/bwrap }" >> .config/mosaic/system.yaml'
examine 'a bubblewrap that fails: an old one (what it says is played by a script)' sandbox-unavailable sandbox
as_ada sed -i '/^sandbox:/d' .config/mosaic/system.yaml

with_sysctl user.max_user_namespaces 0 examine 'no user namespaces' sandbox-unavailable sandbox kernel
if [[ -e /proc/sys/kernel/unprivileged_userns_clone ]]; then with_sysctl kernel.unprivileged_userns_clone 0 examine 'user namespaces for root alone (Debian)' sandbox-unavailable sandbox kernel; fi
if [[ -e /proc/sys/kernel/apparmor_restrict_unprivileged_userns ]]; then
  with_sysctl kernel.apparmor_restrict_unprivileged_userns 1 examine "AppArmor restricts user namespaces (Ubuntu's default)" sandbox-unavailable sandbox kernel
  ln -sf /usr/share/apparmor/extra-profiles/bwrap-userns-restrict /etc/apparmor.d/
  apparmor_parser -r /etc/apparmor.d/bwrap-userns-restrict
  with_sysctl kernel.apparmor_restrict_unprivileged_userns 1 examine 'the same, with the remedy applied' none sandbox kernel
  apparmor_parser -R /etc/apparmor.d/bwrap-userns-restrict
  rm /etc/apparmor.d/bwrap-userns-restrict
else say '' '== AppArmor: this kernel has no kernel.apparmor_restrict_unprivileged_userns'; fi

chown -R root:root /home/$USER_NAME/.local/share/mosaic
examine "somebody else's data root" data-root-unsafe store sockets
chown -R $USER_NAME:$USER_NAME /home/$USER_NAME/.local/share/mosaic

truncate -s 64M /var/tmp/small.img
mkfs.ext4 -q /var/tmp/small.img
mkdir -p /mnt/small
mount -o loop /var/tmp/small.img /mnt/small
mkdir -m 700 /mnt/small/data
chown $USER_NAME:$USER_NAME /mnt/small/data
head -c 60M /dev/zero >/mnt/small/filler 2>/dev/null || true
examine 'a full disk' disk-full --data-root /mnt/small/data disk store
umount /mnt/small

as_ada sed -i 's/^roles:/rolls:/' .config/mosaic/businesses/main.yaml
examine 'a mistake in the configuration' config-invalid config
as_ada sed -i 's/^rolls:/roles:/' .config/mosaic/businesses/main.yaml

if command -v dockerd >/dev/null; then
  systemctl start docker
  d=$(mktemp -d)
  for link in bin sbin lib lib64; do ln -s usr/$link "$d/$link"; done
  mkdir -m 1777 "$d/tmp"
  tar -C "$d" -c . | docker import - nothing >/dev/null
  say '' "docker: $(docker --version)"
  docker_doctor 'in Docker as it is' 1
  docker_doctor 'in Docker, one step of the remedy' 1 --security-opt seccomp=unconfined
  docker_doctor 'in Docker, with the whole remedy' 0 --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined
  systemctl stop docker.socket docker
fi
examine 'the same machine at the end' none sandbox kernel git config store sockets disk
