// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "system.pb-c.h"

struct api_call;

Corelane__V1__MasterTurns *master_turns_encode(struct api_call *call);
