#!/bin/sh
# On macOS, for the package in the folder $2; never run so far. What is signed and notarised is decided by the secrets in the
# environment: CERTIFICATE (a .p12 in base64) with CERTIFICATE_PASSWORD; APPLE_ID, APPLE_TEAM, APPLE_PASSWORD.
#   sh macos_image.sh sign dist    signs the program, before it is packed
#   sh macos_image.sh image dist   makes the disk image, signs and notarises it
set -eu
step=$1
dist=$2
folder=$(find "$dist" -maxdepth 1 -type d -name 'grpo-lab-*-macos-*' | head -n 1)
[ -n "$folder" ] || { echo "There is no package for macOS in $dist; make it first." >&2; exit 1; }
name=

if [ -n "${CERTIFICATE:-}" ]; then
    work=$(mktemp -d)
    chain=$work/sign.keychain-db
    trap 'security delete-keychain "$chain" 2>/dev/null || true; rm -rf "$work"' EXIT
    printf '%s' "$CERTIFICATE" | base64 --decode >"$work/certificate.p12"
    security create-keychain -p '' "$chain"
    security unlock-keychain -p '' "$chain"
    security import "$work/certificate.p12" -k "$chain" -P "${CERTIFICATE_PASSWORD:-}" -T /usr/bin/codesign
    security set-key-partition-list -S apple-tool:,apple: -s -k '' "$chain" >/dev/null
    security list-keychains -d user -s "$chain"
    name=$(security find-identity -v -p codesigning "$chain" | sed -n 's/.*"\(.*\)"/\1/p' | head -n 1)
fi

case "$step" in
sign)
    if [ -n "$name" ]; then
        codesign --force --deep --options runtime --timestamp --sign "$name" "$folder/GRPO Lab.app"
    else
        echo 'No certificate: the program is signed ad hoc only, and macOS will ask before its first start.'
    fi
    ;;
image)
    image=$folder.dmg
    ln -sf /Applications "$folder/Applications"
    hdiutil create -quiet -volname 'GRPO Lab' -srcfolder "$folder" -format UDZO -ov "$image"
    rm "$folder/Applications"
    if [ -n "$name" ] && [ -n "${APPLE_ID:-}" ]; then
        codesign --timestamp --sign "$name" "$image"
        xcrun notarytool submit "$image" --apple-id "$APPLE_ID" --team-id "$APPLE_TEAM" --password "$APPLE_PASSWORD" --wait
        xcrun stapler staple "$image"
    else
        echo 'No Apple account: the image is not notarised.'
    fi
    ;;
*)
    echo "Usage: sh macos_image.sh sign|image FOLDER" >&2
    exit 2
    ;;
esac
