/* SPDX-License-Identifier: MIT */
/* Everything: one include for a program that uses the whole library. */
#ifndef MYRA_MYRA_H
#define MYRA_MYRA_H

#include <myra/alloc.h>
#include <myra/err.h>
#include <myra/export.h>
#include <myra/http.h>
#include <myra/loop.h>
#include <myra/pool.h>
#include <myra/tcp.h>
#include <myra/version.h>

#endif
