// SPDX-License-Identifier: Apache-2.0
// The filter of a capture: its text up to a newline, then a packet, which runs through the compiled filter. A refusal
// says why.
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz_frame.h"
#include "graph/capture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// libpcap looks up the hosts of a filter; here there are none.
int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **res)
{
	return EAI_NONAME;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *end = memchr(data, '\n', size);
	size_t length = end ? (size_t)(end - data) : size, rest = end ? size - length - 1 : 0;
	char *text = malloc(length + 1);
	uint8_t *packet = malloc(rest);
	struct bpf_program filter = {0};
	struct error err = {0};

	memcpy(text, data, length);
	text[length] = '\0';
	memcpy(packet, data + size - rest, rest);
	if (filter_compile(text, "filter", &filter, &err) < 0)
		FUZZ_ASSERT(err.code && err.message[0] && strcmp(err.field, "filter") == 0);
	else if (filter.bf_insns)
		bpf_filter(filter.bf_insns, packet, (unsigned)rest, (unsigned)rest);
	else
		FUZZ_ASSERT(*text == '\0');
	pcap_freecode(&filter);
	free(packet);
	free(text);
	return 0;
}
