#!/bin/sh
# Installs Debian's Chromium for the browser tests, where that is possible without asking for a password.
set -e
[ "$(id -u)" = 0 ] || { echo "Only root may install packages: apt-get install chromium"; exit 1; }
command -v apt-get || { echo "There is no apt-get."; exit 1; }
export DEBIAN_FRONTEND=noninteractive
apt-get -qq update
apt-get -qq install -y --no-install-recommends -o DPkg::Lock::Timeout=120 chromium fonts-liberation fonts-dejavu-core
