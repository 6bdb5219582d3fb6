#!/usr/bin/env bash
# Packs what npm would publish, installs it in a clean folder with nothing but that tarball, and runs it from there. As a plain user; npm fetches the dependencies.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."

[[ $(id -u) != 0 ]] || { echo 'as a plain user: the demo refuses root' >&2; exit 2; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
npm pack --silent --pack-destination "$dir" >/dev/null
tarball=$(echo "$dir"/mosaic-*.tgz)

# Node's own headers, where it came with them: better-sqlite3 is built where no binary can be fetched
node_prefix=$(dirname "$(dirname "$(readlink -f "$(command -v node)")")")
if [[ -d $node_prefix/include/node ]]; then export npm_config_nodedir=$node_prefix; fi

mkdir "$dir/home" "$dir/prefix"
export HOME=$dir/home
cd "$HOME"
npm install --global --prefix "$dir/prefix" --no-audit --no-fund "$tarball"
mosaic=$dir/prefix/bin/mosaic
"$mosaic" version
"$mosaic" doctor install
"$mosaic" demo
echo "packed, installed and run from $(basename "$tarball")"
