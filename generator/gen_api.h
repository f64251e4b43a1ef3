// SPDX-License-Identifier: Apache-2.0
// The service of api/generator.proto.
#pragma once

void gen_api_poll(void);  // the polling thread has news
void gen_api_close(void); // ends a trial that runs, waits for its end
