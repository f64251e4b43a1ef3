// SPDX-License-Identifier: Apache-2.0
// Rules of the NIC (rte_flow) that steer the packets for an address to one queue, which RSS does not use meanwhile.
#include <errno.h>

#include <rte_flow.h>

#include "base/log.h"
#include "port/dpdk.h"

// Takes this queue out of the RSS table; PORT_MAX_QUEUES: puts all queues into it. A NIC without such a table keeps
// using the queue for other packets, too, which its poller then hands on.
static void set_redirection(struct dpdk *d, uint16_t without)
{
	struct rte_eth_rss_reta_entry64 reta[RTE_ETH_RSS_RETA_SIZE_512 / RTE_ETH_RETA_GROUP_SIZE] = {};
	uint16_t i, n = d->port->n_queues, use = without < n ? (uint16_t)(n - 1) : n;
	struct rte_eth_dev_info info;
	int ret = rte_eth_dev_info_get(d->dev.id, &info);

	if (ret < 0 || info.reta_size == 0 || info.reta_size > RTE_ETH_RSS_RETA_SIZE_512)
		return;
	for (i = 0; i < info.reta_size; i++) {
		reta[i / RTE_ETH_RETA_GROUP_SIZE].mask |= 1ull << i % RTE_ETH_RETA_GROUP_SIZE;
		reta[i / RTE_ETH_RETA_GROUP_SIZE].reta[i % RTE_ETH_RETA_GROUP_SIZE] =
			(uint16_t)(i % use + (i % use >= without));
	}
	ret = rte_eth_dev_rss_reta_update(d->dev.id, reta, info.reta_size);
	if (ret < 0)
		LOG(INFO, "%s: RSS still uses queue %u: %s", d->dev.name, without, strerror(-ret));
}

struct rule {
	struct rte_flow_item_ipv4 ip4, mask4;
	struct rte_flow_item_ipv6 ip6, mask6;
	struct rte_flow_item pattern[4];
	struct rte_flow_action_queue queue;
	struct rte_flow_action actions[2];
};

static void write_rule(struct rule *r, const struct ip_addr *addr, uint16_t vlan, uint16_t queue)
{
	struct rte_flow_item *item = r->pattern;

	r->queue.index = queue;
	item++->type = RTE_FLOW_ITEM_TYPE_ETH;
	if (vlan)
		item++->type = RTE_FLOW_ITEM_TYPE_VLAN;
	if (addr->family == IPV4) {
		r->ip4.hdr.dst_addr = ip4_be(addr);
		r->mask4.hdr.dst_addr = UINT32_MAX;
		*item++ = (struct rte_flow_item){.type = RTE_FLOW_ITEM_TYPE_IPV4, .spec = &r->ip4, .mask = &r->mask4};
	} else {
		memcpy(r->ip6.hdr.dst_addr, addr->bytes, 16);
		memset(r->mask6.hdr.dst_addr, 0xff, 16);
		*item++ = (struct rte_flow_item){.type = RTE_FLOW_ITEM_TYPE_IPV6, .spec = &r->ip6, .mask = &r->mask6};
	}
	item->type = RTE_FLOW_ITEM_TYPE_END;
	r->actions[0] = (struct rte_flow_action){.type = RTE_FLOW_ACTION_TYPE_QUEUE, .conf = &r->queue};
	r->actions[1].type = RTE_FLOW_ACTION_TYPE_END;
}

void *dpdk_steer(struct port *port, const struct ip_addr *addr, uint16_t queue, struct error *err)
{
	const struct rte_flow_attr attr = {.ingress = 1};
	struct rte_flow_error why = {};
	struct dpdk *d = port->priv;
	struct rte_flow *flow = NULL;
	struct rule r = {};

	write_rule(&r, addr, port->cfg.vlan, queue);
	if (rte_flow_validate(d->dev.id, &attr, r.pattern, r.actions, &why) == 0)
		flow = rte_flow_create(d->dev.id, &attr, r.pattern, r.actions, &why);
	if (flow == NULL) {
		error_set(err, ENOTSUP, NULL, NULL, NULL, "%s does not support this rule: %s", port->driver,
			  why.message ? why.message : rte_strerror(rte_errno));
		return NULL;
	}
	if (d->rules++ == 0)
		set_redirection(d, queue);
	return flow;
}

void dpdk_unsteer(struct port *port, void *rule)
{
	struct rte_flow_error why = {};
	struct dpdk *d = port->priv;

	if (rte_flow_destroy(d->dev.id, rule, &why) < 0)
		LOG(ERR, "%s: a rule cannot be removed: %s", d->dev.name,
		    why.message ? why.message : rte_strerror(rte_errno));
	if (--d->rules == 0)
		set_redirection(d, PORT_MAX_QUEUES);
}
