// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

RTE_LOG_REGISTER_DEFAULT(corelane_logtype, INFO)
