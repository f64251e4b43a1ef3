// SPDX-License-Identifier: Apache-2.0
#include "port/vhost_message.h"
#include <errno.h>
#include "port/vhost.h"
void vhost_session_begin(struct vhost_session *s)
{
	s->features = 0;
}
int vhost_message_check_header(const struct vhost_message *m, const char **why)
{
	if ((m->flags & 3) == 1 && m->size <= VHOST_MESSAGE_PAYLOAD)
		return 0;
	*why = "a header that the protocol does not have";
	return -EPROTO;
}
enum vhost_verdict vhost_session_check(const struct vhost_session *s, const struct vhost_message *m, const char **why)
{
	switch (m->request) {
	case 1:
	case 39:
	case 40:
	case 3:
	case 15:
	case 17:
	case 16:
	case 12:
	case 13:
	case 14:
	case 18:
	case 19:
	case 20:
		return VHOST_PASS;
	case 8:
		*why = "a ring with fewer than 32 or more than 1,024 entries";
		return m->state.num < 32 || m->state.num > 1024 ? VHOST_REFUSE : VHOST_PASS_STOPPED;
	case 2:
	case 5:
	case 6:
	case 9:
	case 10:
	case 11:
	case 4:
		return VHOST_PASS_STOPPED;
	default:
		*why = "a message that was not offered";
		return VHOST_REFUSE;
	}
}
bool vhost_message_has_answer(const struct vhost_message *m)
{
	return m->request == 40 || m->request == 1 || m->request == 15 || m->request == 17 || m->request == 11 ||
	       m->request == 6;
}
void vhost_session_accepted(struct vhost_session *s, const struct vhost_message *m, const struct vhost_message *answer)
{
}
void vhost_message_mask_answer(const struct vhost_message *request, struct vhost_message *answer)
{
}
