#!/bin/sh
# SPDX-License-Identifier: MIT
# The backend conformance suite on epoll.
exec "$(dirname "$0")/with-backend.sh" epoll ./tests/backend_conformance
