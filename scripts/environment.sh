# Sourced by the scripts beside it. Leaves PYTHON pointing at an interpreter that can import snnmap
# and everything it needs: the active virtual environment's, else that of .venv, made if missing.
#
#   . scripts/environment.sh EXTRA      EXTRA is "" for the product alone, or "test"

say() { printf '%s: %s\n' "$(basename "$0")" "$*"; }
die() { say "$*" >&2; exit 2; }

find_python() {
    local name
    for name in "${SNNMAP_PYTHON:-}" python3 python3.13 python3.12 python3.11 python; do
        [ -n "$name" ] || continue
        if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$name"
            return
        fi
    done
    die "needs Python 3.11 or newer, and finds none (set SNNMAP_PYTHON to one)"
}

make_environment() {
    local base
    base=$(find_python) || exit 2
    say "making .venv with $("$base" --version)"
    "$base" -m venv .venv || { rm -rf .venv; die "cannot make .venv; on Debian or Ubuntu: apt install python3-venv"; }
}

install_into() { # install_into PYTHON WHAT...
    local python=$1
    shift
    if "$python" -m pip --version >/dev/null 2>&1; then
        "$python" -m pip install --quiet --disable-pip-version-check "$@"
    elif command -v uv >/dev/null; then
        uv pip install --quiet --python "$python" "$@"
    else
        die "$python has no pip"
    fi
}

extra=${1:-}
if [ -n "${VIRTUAL_ENV:-}" ]; then
    folder=$VIRTUAL_ENV
else
    folder=$PWD/.venv
    [ -x "$folder/bin/python" ] || make_environment
fi
PYTHON=$folder/bin/python
stamp=$folder/.snnmap-${extra:-base}
wanted="$PWD $(cksum <pyproject.toml)"
if [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ]; then
    say "installing snnmap${extra:+ and its $extra tools} into $folder (once)"
    install_into "$PYTHON" -e ".${extra:+[$extra]}" || die "installation failed; see the lines above"
    printf '%s\n' "$wanted" >"$stamp"
fi
