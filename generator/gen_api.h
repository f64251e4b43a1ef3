// SPDX-License-Identifier: Apache-2.0
// The service of api/generator.proto.
#pragma once

void gen_api_poll(void);  // called when gen-poll has written a window or ended a trial
void gen_api_close(void); // stops a running trial and waits for its end
