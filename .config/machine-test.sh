#!/usr/bin/env bash
# Tries Mosaic on a Debian 13 with systemd that is made for it and thrown away: a container, which shares this machine's kernel, or with --vm a virtual
# machine with Debian's kernel, where cgroups are of version 2 and resets and sysctls hurt nobody. Prints what the stories of .config/machine/ saw;
# exit 1 at the first thing that is not as it should be.
#   .config/machine-test.sh [--vm] [--keep DIR] [STORY…]     STORY: service (default), settings; with --vm also limits, reboot, doctor
#   DIR: where the machine is made, and kept for the next time (default: a temporary place, removed)
# Needs root, debootstrap and network for apt; systemd-container, or for --vm qemu-system-x86 (which emulates: /dev/kvm is not needed) and e2fsprogs.
# The build (npm run build) and node_modules come from this clone; they run where Node has the same ABI.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."
PATH=/usr/sbin:/usr/bin:/sbin:/bin:$PATH

DIST=trixie
USER_NAME=ada
PACKAGES=ca-certificates,systemd,systemd-sysv,dbus,libpam-systemd,procps,bubblewrap,git,nodejs
VM_PACKAGES=,linux-image-amd64,udev,kmod,apparmor,apparmor-profiles,docker.io,docker-cli,e2fsprogs,iproute2,iptables
OPT=/opt/mosaic
STORIES=/opt/mosaic-stories

say() { printf '%s\n' "$*"; }
die() {
  printf 'machine-test: %s\n' "$*" >&2
  exit 1
}

KIND=container
KEEP=''
while [[ ${1:-} == --* ]]; do
  case $1 in
    --vm) KIND=vm ;;
    --keep) KEEP=$2 && shift ;;
    *) die "no such option: $1" ;;
  esac
  shift
done
if (($# == 0)); then set -- service; fi
for story; do [[ -x .config/machine/$story.sh ]] || die "no such story: $story"; done

((EUID == 0)) || die 'needs root, which boots machines'
NEEDED=(debootstrap systemd-nspawn nsenter)
if [[ $KIND == vm ]]; then NEEDED=(debootstrap qemu-system-x86_64 mke2fs); fi
for program in "${NEEDED[@]}"; do command -v "$program" >/dev/null || die "$program is missing: see the first lines of this script"; done
[[ -e dist/cli.mjs ]] || die 'not built: npm run build'

DIR=${KEEP:-$(mktemp -d /var/tmp/mosaic-machine-test.XXXXXX)}
MACHINE=$DIR/$KIND
PROCESS=''
LEADER=''

clean_up() {
  if [[ -n $LEADER ]]; then nsenter -t "$LEADER" -a systemctl poweroff --no-wall 2>/dev/null || true; fi
  if [[ -n $PROCESS ]]; then
    for _ in $(seq 100); do
      if [[ $KIND == vm || ! -d /proc/$PROCESS ]]; then break; fi
      sleep 0.2
    done
    if [[ -d /proc/$PROCESS ]]; then kill -9 "$PROCESS" || true; fi
  fi
  if [[ -z $KEEP ]]; then rm -rf "$DIR"; fi
}
trap clean_up EXIT

# ---- the machine ----

mirror() {
  cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | grep -oE 'https?://[^ ]+/debian/?( |$)' | sed -nE '1s#/? *$##p'
}

make_machine() {
  local packages=$PACKAGES
  if [[ $KIND == vm ]]; then packages+=$VM_PACKAGES; fi
  if [[ ! -e $MACHINE/.made ]]; then
    say "making a Debian $DIST (log: $DIR/make.log)"
    mkdir -p "$MACHINE"
    debootstrap --variant=minbase --include=$packages $DIST "$MACHINE" "$(mirror)" >"$DIR/make.log" 2>&1 || die "debootstrap failed: $(tail -n 1 "$DIR/make.log")"
    touch "$MACHINE/.made"
  fi
  echo mosaic-test >"$MACHINE/etc/hostname"
  printf '127.0.0.1 localhost mosaic-test\n' >"$MACHINE/etc/hosts"
  chroot "$MACHINE" id $USER_NAME >/dev/null 2>&1 || chroot "$MACHINE" useradd --create-home --shell /bin/bash $USER_NAME
  # what an earlier test may have left
  rm -rf "${MACHINE:?}"/etc/systemd/system/{,*.wants/}mosaic-* "${MACHINE:?}"/home/$USER_NAME/.config/systemd "${MACHINE:?}/var/lib/systemd/linger/$USER_NAME" "${MACHINE:?}/etc/mosaic"
  # in a container they would set sysctls and devices of the machine that it runs on
  if [[ $KIND == container ]]; then chroot "$MACHINE" systemctl mask systemd-sysctl.service systemd-udevd.service >/dev/null 2>&1; fi
}

install_build() {
  rm -rf "${MACHINE:?}$OPT" "${MACHINE:?}$STORIES"
  mkdir -p "$MACHINE$OPT" "$MACHINE$STORIES"
  cp -r bin dist package.json "$MACHINE$OPT/"
  npm ls --omit=dev --all --parseable 2>/dev/null | sed -n "s#^$PWD/##p" | sort -u | tar -cf - --exclude='*/build/Release/obj*' --exclude='*/deps/*' -T - | tar -xf - -C "$MACHINE$OPT"
  cp .config/machine/*.sh "$MACHINE$STORIES/"
  chown -R root:root "$MACHINE$OPT" "$MACHINE$STORIES"
  ln -sf $OPT/bin/mosaic.js "$MACHINE/usr/local/bin/mosaic"
}

# ---- as a container ----

# nspawn covers parts of /proc, and then the kernel lets nobody unprivileged mount a new one: uncover them.
uncover_proc() {
  # shellcheck disable=SC2016
  nsenter -t "$LEADER" -a sh -c 'for i in 1 2 3; do awk "\$2 ~ \"^/proc/\" {print \$2}" /proc/mounts | sort -r | while read -r m; do umount -l "$m" 2>/dev/null || :; done; done'
}

run_in_container() {
  env -i PATH="$PATH" systemd-nspawn -q --register=no --keep-unit --console=pipe --resolv-conf=copy-host -D "$MACHINE" --boot </dev/null >"$DIR/boot.log" 2>&1 &
  PROCESS=$!
  for _ in $(seq 150); do
    sleep 0.2
    LEADER=$(tr ' ' '\n' <"/proc/$PROCESS/task/$PROCESS/children" 2>/dev/null | head -n 1) || true
    [[ -n $LEADER && $(nsenter -t "$LEADER" -a systemctl is-system-running 2>/dev/null) =~ running|degraded ]] || continue
    uncover_proc
    for story; do nsenter -t "$LEADER" -a env -i $STORIES/"$story".sh; done
    return
  done
  die "the container did not boot: $(tail -n 1 "$DIR/boot.log")"
}

# ---- as a virtual machine ----

# The stories start with it, and go on with those that are left after a reset.
leave_stories() {
  local wanted=$MACHINE/etc/systemd/system/graphical.target.wants
  rm -rf "${MACHINE:?}/var/lib/mosaic-test"
  mkdir -p "$MACHINE/var/lib/mosaic-test" "$wanted"
  printf '%s\n' "$@" >"$MACHINE/var/lib/mosaic-test/left"
  cp .config/machine/stories.service "$MACHINE/etc/systemd/system/"
  ln -sf ../stories.service "$wanted/stories.service"
  # the story of the doctor starts them when it needs them
  systemctl --root="$MACHINE" disable -q docker.service docker.socket containerd.service
}

run_in_vm() {
  local image=$DIR/vm.img words=$DIR/words.log
  leave_stories "$@"
  rm -f "$image"
  truncate -s 8G "$image"
  mke2fs -q -t ext4 -d "$MACHINE" "$image" 2>/dev/null
  : >"$words"
  qemu-system-x86_64 -accel tcg,thread=multi -cpu max -smp 2 -m 3072 -display none -nic none \
    -kernel "$MACHINE"/boot/vmlinuz-* -initrd "$MACHINE"/boot/initrd.img-* -append 'console=ttyS0 root=/dev/vda rw quiet systemd.unit=graphical.target' \
    -drive "file=$image,format=raw,if=virtio" -serial "file:$DIR/console.log" -serial "file:$words" </dev/null &
  PROCESS=$!
  tail -n +1 -s 0.5 --pid=$PROCESS -f "$words" | sed -u 's,\r$,,'
  wait $PROCESS || die "the virtual machine ended: see $DIR/console.log"
  PROCESS=''
  rm -f "$image"
  [[ $(tail -n 1 "$words" | tr -d '\r') == 'all told' ]] || die 'see above'
}

make_machine
install_build
say "$(sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' "$MACHINE/etc/os-release") as a $KIND: $(for name in systemd nodejs bubblewrap git; do printf '%s ' "$name $(chroot "$MACHINE" dpkg-query -W -f '${Version}' $name)"; done)"
"run_in_$KIND" "$@"
say 'machine-test: all as it should be'
