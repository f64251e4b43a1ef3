// SPDX-License-Identifier: Apache-2.0
// WITH_TSAN is defined in builds with the thread sanitizer, which understands neither vector instructions nor the order
// that a data dependency gives.
#pragma once

#if defined(__SANITIZE_THREAD__)
#define WITH_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WITH_TSAN 1
#endif
#endif
