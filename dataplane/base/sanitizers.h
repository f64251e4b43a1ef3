// SPDX-License-Identifier: Apache-2.0
// WITH_TSAN is defined in builds with the thread sanitizer, which understands neither vector instructions nor the order
// that a data dependency gives. WITH_ASAN is defined in builds with the address sanitizer.
#pragma once

#if !defined(__has_feature)
#define __has_feature(x) 0
#endif

#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
#define WITH_TSAN 1
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define WITH_ASAN 1
#endif

// How often a test does something. The thread sanitizer makes it some ten times as slow, and notices a race the first
// time; the address sanitizer makes it some five times as slow.
#ifdef WITH_TSAN
#define TSAN_ROUNDS(usual, few) (few)
#else
#define TSAN_ROUNDS(usual, few) (usual)
#endif
#ifdef WITH_ASAN
#define ASAN_ROUNDS(usual, few) (few)
#else
#define ASAN_ROUNDS(usual, few) (usual)
#endif
