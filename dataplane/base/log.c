// SPDX-License-Identifier: Apache-2.0
// Registers the log type of DPDK that LOG() writes to.
#include "base/log.h"

RTE_LOG_REGISTER_DEFAULT(corelane_logtype, INFO)
