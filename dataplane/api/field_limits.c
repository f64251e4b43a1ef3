// SPDX-License-Identifier: Apache-2.0
// Made by `make api` from the options in api/*.proto. Change them there.
// clang-format off
#include "api/check.h"

#include "bridge.pb-c.h"
#include "capture.pb-c.h"
#include "debug.pb-c.h"
#include "event.pb-c.h"
#include "flow.pb-c.h"
#include "generator.pb-c.h"
#include "host.pb-c.h"
#include "label.pb-c.h"
#include "meter.pb-c.h"
#include "mirror.pb-c.h"
#include "nat.pb-c.h"
#include "neighbor.pb-c.h"
#include "nexthop.pb-c.h"
#include "port.pb-c.h"
#include "route.pb-c.h"
#include "rule.pb-c.h"
#include "service.pb-c.h"
#include "stats.pb-c.h"
#include "system.pb-c.h"
#include "thread.pb-c.h"
#include "vni.pb-c.h"
#include "vrf.pb-c.h"
#include "worker.pb-c.h"

static const struct field_limits bridge_fields[] = {
	{.field = 0, .flags = LIMIT_KEY | LIMIT_REQUIRED, .notation = NOTATION_NAME},
	{.field = 1, .min = 1ull, .max = 16383ull},
	{.field = 2},
	{.field = 3, .flags = LIMIT_DISTINCT, .min = 1ull, .max = 1048575ull, .items = 256ull},
	{.field = 5, .min = 1ull, .max = 1048576ull},
};
static const char *const bridge_settable[] = {"unknown_unicast", "flood", "no_learning", "mac_limit", "neighbor_suppression", "multicast_snooping", NULL};
static const struct message_limits bridge_limits = {
	.type = &corelane__v1__bridge__descriptor, .fields = bridge_fields, .n_fields = 5, .settable = bridge_settable};

static const struct field_limits bridge_add_request_fields[] = {
	{.field = 0, .of = &bridge_limits, .flags = LIMIT_REQUIRED},
};
static const struct message_limits bridge_add_request_limits = {
	.type = &corelane__v1__bridge_add_request__descriptor, .fields = bridge_add_request_fields, .n_fields = 1};

static const struct field_limits bridge_set_request_fields[] = {
	{.field = 0, .of = &bridge_limits, .flags = LIMIT_REQUIRED | LIMIT_PARTIAL},
};
static const struct message_limits bridge_set_request_limits = {
	.type = &corelane__v1__bridge_set_request__descriptor, .fields = bridge_set_request_fields, .n_fields = 1};

static const struct field_limits mac_fields[] = {
	{.field = 0, .flags = LIMIT_KEY | LIMIT_REQUIRED},
	{.field = 1, .flags = LIMIT_KEY | LIMIT_REQUIRED, .notation = NOTATION_MAC},
	{.field = 2, .flags = LIMIT_REQUIRED},
	{.field = 3, .flags = LIMIT_REQUIRED, .min = 1ull, .max = 1048575ull},
	{.field = 8, .flags = LIMIT_DISTINCT, .items = 16ull, .notation = NOTATION_HOST},
};
static const struct choice_limits mac_choices[] = {{"target", 2}};
static const struct message_limits mac_limits = {
	.type = &corelane__v1__mac__descriptor, .fields = mac_fields, .n_fields = 5, .choices = mac_choices, .n_choices = 1};

static const struct field_limits mac_add_request_fields[] = {
	{.field = 0, .of = &mac_limits, .flags = LIMIT_REQUIRED},
};
static const struct message_limits mac_add_request_limits = {
	.type = &corelane__v1__mac_add_request__descriptor, .fields = mac_add_request_fields, .n_fields = 1};

static const struct field_limits mac_add_all_request_fields[] = {
	{.field = 0, .of = &mac_limits, .items = 4096ull},
};
static const struct message_limits mac_add_all_request_limits = {
	.type = &corelane__v1__mac_add_all_request__descriptor, .fields = mac_add_all_request_fields, .n_fields = 1};

static const struct field_limits capture_request_fields[] = {
	{.field = 1},
};
static const struct message_limits capture_request_limits = {
	.type = &corelane__v1__capture_request__descriptor, .fields = capture_request_fields, .n_fields = 1};

static const struct field_limits trace_request_fields[] = {
	{.field = 2, .min = 1ull, .max = 200ull},
};
static const struct message_limits trace_request_limits = {
	.type = &corelane__v1__trace_request__descriptor, .fields = trace_request_fields, .n_fields = 1};

static const struct field_limits debug_delay_request_fields[] = {
	{.field = 1, .max = 60000000ull},
};
static const struct message_limits debug_delay_request_limits = {
	.type = &corelane__v1__debug_delay_request__descriptor, .fields = debug_delay_request_fields, .n_fields = 1};

static const struct field_limits debug_disturb_request_fields[] = {
	{.field = 0},
	{.field = 1, .max = 1000000ull},
};
static const struct message_limits debug_disturb_request_limits = {
	.type = &corelane__v1__debug_disturb_request__descriptor, .fields = debug_disturb_request_fields, .n_fields = 2};

static const struct field_limits event_list_request_fields[] = {
	{.field = 1},
};
static const struct message_limits event_list_request_limits = {
	.type = &corelane__v1__event_list_request__descriptor, .fields = event_list_request_fields, .n_fields = 1};

static const struct field_limits flow_filter_fields[] = {
	{.field = 1, .notation = NOTATION_PREFIX},
	{.field = 4, .min = 1ull, .max = 65535ull},
	{.field = 5},
	{.field = 6},
};
static const struct message_limits flow_filter_limits = {
	.type = &corelane__v1__flow_filter__descriptor, .fields = flow_filter_fields, .n_fields = 4};

static const struct field_limits flow_resize_request_fields[] = {
	{.field = 0, .flags = LIMIT_REQUIRED, .min = 1024ull, .max = 33554432ull},
};
static const struct message_limits flow_resize_request_limits = {
	.type = &corelane__v1__flow_resize_request__descriptor, .fields = flow_resize_request_fields, .n_fields = 1};

static const struct field_limits flow_explain_request_fields[] = {
	{.field = 3, .notation = NOTATION_ADDRESS},
	{.field = 4, .notation = NOTATION_ADDRESS},
	{.field = 5, .max = 65535ull},
	{.field = 6, .max = 65535ull},
	{.field = 8, .notation = NOTATION_MAC},
};
static const struct message_limits flow_explain_request_limits = {
	.type = &corelane__v1__flow_explain_request__descriptor, .fields = flow_explain_request_fields, .n_fields = 5};

static const struct field_limits generator_memif_fields[] = {
	{.field = 0, .flags = LIMIT_REQUIRED, .notation = NOTATION_PATH},
	{.field = 3, .flags = LIMIT_POWER_OF_TWO, .min = 64ull, .max = 16384ull},
	{.field = 4, .min = 1ull, .max = 16ull},
};
static const struct message_limits generator_memif_limits = {
	.type = &corelane__v1__generator_memif__descriptor, .fields = generator_memif_fields, .n_fields = 3};

static const struct field_limits generator_port_fields[] = {
	{.field = 0, .flags = LIMIT_REQUIRED, .max = 63ull, .notation = NOTATION_LINE},
	{.field = 1, .of = &generator_memif_limits},
	{.field = 2, .flags = LIMIT_REQUIRED, .max = 255ull, .notation = NOTATION_LINE},
};
static const struct choice_limits generator_port_choices[] = {{"device", 1}};
static const struct message_limits generator_port_limits = {
	.type = &corelane__v1__generator_port__descriptor, .fields = generator_port_fields, .n_fields = 3, .choices = generator_port_choices, .n_choices = 1};

static const struct field_limits generator_flows_fields[] = {
	{.field = 0, .min = 1ull, .max = 16777216ull},
	{.field = 8, .max = 1000000000ull},
};
static const struct message_limits generator_flows_limits = {
	.type = &corelane__v1__generator_flows__descriptor, .fields = generator_flows_fields, .n_fields = 2};

static const struct field_limits generator_stream_fields[] = {
	{.field = 0, .max = 63ull},
	{.field = 3, .flags = LIMIT_REQUIRED, .min = 42ull, .max = 240ull},
	{.field = 5, .items = 16ull},
	{.field = 6, .items = 4ull},
	{.field = 8, .flags = LIMIT_REQUIRED, .min = 58ull, .max = 65024ull, .items = 64ull},
	{.field = 9, .of = &generator_flows_limits},
	{.field = 10, .min = 1ull, .max = 1000000ull},
	{.field = 11, .max = 240ull},
};
static const struct message_limits generator_stream_limits = {
	.type = &corelane__v1__generator_stream__descriptor, .fields = generator_stream_fields, .n_fields = 8};

static const struct field_limits generator_profile_fields[] = {
	{.field = 0, .of = &generator_port_limits, .flags = LIMIT_REQUIRED, .items = 64ull},
	{.field = 1, .of = &generator_stream_limits, .flags = LIMIT_REQUIRED, .items = 4096ull},
};
static const struct message_limits generator_profile_limits = {
	.type = &corelane__v1__generator_profile__descriptor, .fields = generator_profile_fields, .n_fields = 2};

static const struct field_limits generator_trial_fields[] = {
	{.field = 2, .max = 1000000000ull},
	{.field = 3, .min = 1ull},
	{.field = 4, .min = 1ull},
	{.field = 5, .min = 1ull},
	{.field = 6},
	{.field = 10, .items = 16ull},
	{.field = 11, .max = 1000ull},
};
static const struct message_limits generator_trial_limits = {
	.type = &corelane__v1__generator_trial__descriptor, .fields = generator_trial_fields, .n_fields = 7};

static const struct field_limits host_steer_fields[] = {
	{.field = 0, .flags = LIMIT_KEY | LIMIT_REQUIRED, .notation = NOTATION_HOST},
	{.field = 1, .flags = LIMIT_KEY},
};
static const struct message_limits host_steer_limits = {
	.type = &corelane__v1__host_steer__descriptor, .fields = host_steer_fields, .n_fields = 2};

static const struct field_limits host_steer_add_request_fields[] = {
	{.field = 0, .of = &host_steer_limits, .flags = LIMIT_REQUIRED},
};
static const struct message_limits host_steer_add_request_limits = {
	.type = &corelane__v1__host_steer_add_request__descriptor, .fields = host_steer_add_request_fields, .n_fields = 1};

static const struct field_limits label_fields[] = {
	{.field = 0, .flags = LIMIT_KEY | LIMIT_REQUIRED, .min = 16ull, .max = 1048575ull},
	{.field = 1, .flags = LIMIT_REQUIRED},
	{.field = 2, .flags = LIMIT_REQUIRED},
	{.field = 3, .flags = LIMIT_REQUIRED, .min = 1ull, .max = 1048575ull},
};
static const struct choice_limits label_choices[] = {{"target", 1}};
static const struct message_limits label_limits = {
	.type = &corelane__v1__label__descriptor, .fields = label_fields, .n_fields = 4, .choices = label_choices, .n_choices = 1};

static const struct field_limits label_add_request_fields[] = {
	{.field = 0, .of = &label_limits, .flags = LIMIT_REQUIRED},
};
static const struct message_limits label_add_request_limits = {
	.type = &corelane__v1__label_add_request__descriptor, .fields = label_add_request_fields, .n_fields = 1};

static const struct field_limits meter_fields[] = {
	{.field = 0, .flags = LIMIT_KEY | LIMIT_REQUIRED, .notation = NOTATION_NAME},
	{.field = 1, .min = 8000ull, .max = 1000000000000ull},
	{.field = 2, .min = 9600ull, .max = 4294967295ull},
	{.field = 3, .min = 1ull, .max = 1000000000ull},
	{.field = 4, .min = 1ull, .max = 4294967295ull},
};
static const char *const meter_settable[] = {"bit_rate", "burst_bytes", "packet_rate", "burst_packets", NULL};
static const struct message_limits meter_limits = {
	.type = &corelane__v1__meter__descriptor, .fields = meter_fields, .n_fields = 5, .settable = meter_settable};

static const struct field_limits meter_add_request_fields[] = {
	{.field = 0, .of = &meter_limits, .flags = LIMIT_REQUIRED},
};
static const struct message_limits meter_add_request_limits = {
	.type = &corelane__v1__meter_add_request__descriptor, .fields = meter_add_request_fields, .n_fields = 1};

static const struct field_limits meter_set_request_fields[] = {
	{.field = 0, .of = &meter_limits, .flags = LIMIT_REQUIRED | LIMIT_PARTIAL},
};
static const struct message_limits meter_set_request_limits = {
	.type = &corelane__v1__meter_set_request__descriptor, .fields = meter_set_request_fields, .n_fields = 1};

static const struct field_limits mirror_vni_fields[] = {
	{.field = 0, .flags = LIMIT_REQUIRED, .notation = NOTATION_HOST},
	{.field = 1, .notation = NOTATION_ADDRESS},
	{.field = 2, .flags = LIMIT_REQUIRED, .min = 1ull, .max = 16777215ull},
};
static const struct message_limits mirror_vni_limits = {
	.type = &corelane__v1__mirror_vni__descriptor, .fields = mirror_vni_fields, .n_fields = 3};

static const struct field_limits mirror_erspan_fields[] = {
	{.field = 0, .flags = LIMIT_REQUIRED, .notation = NOTATION_HOST},
	{.field = 1, .notation = NOTATION_ADDRESS},
	{.field = 2, .max = 1023ull},
};
static const struct message_limits mirror_erspan_limits = {
	.type = &corelane__v1__mirror_erspan__descriptor, .fields = mirror_erspan_fields, .n_fields = 3};

static const struct field_limits mirror_fields[] = {
	{.field = 0, .flags = LIMIT_KEY | LIMIT_REQUIRED, .notation = NOTATION_NAME},
	{.field = 1, .flags = LIMIT_REQUIRED},
	{.field = 2, .of = &mirror_vni_limits},
	{.field = 3, .of = &mirror_erspan_limits},
	{.field = 4},
	{.field = 5, .min = 64ull, .max = 9614ull},
	{.field = 6, .of = &mirror_vni_limits},
};
static const struct choice_limits mirror_choices[] = {{"target", 1}};
static const char *const mirror_settable[] = {"target", "direction", "snap_length", NULL};
static const struct message_limits mirror_limits = {
	.type = &corelane__v1__mirror__descriptor, .fields = mirror_fields, .n_fields = 7, .choices = mirror_choices, .n_choices = 1, .settable = mirror_settable};

static const struct field_limits mirror_add_request_fields[] = {
	{.field = 0, .of = &mirror_limits, .flags = LIMIT_REQUIRED},
};
static const struct message_limits mirror_add_request_limits = {
	.type = &corelane__v1__mirror_add_request__descriptor, .fields = mirror_add_request_fields, .n_fields = 1};

static const struct field_limits mirror_set_request_fields[] = {
	{.field = 0, .of = &mirror_limits, .flags = LIMIT_REQUIRED | LIMIT_PARTIAL},
};
static const struct message_limits mirror_set_request_limits = {
	.type = &corelane__v1__mirror_set_request__descriptor, .fields = mirror_set_request_fields, .n_fields = 1};

static const struct field_limits floating_nat_fields[] = {
	{.field = 0, .flags = LIMIT_REQUIRED, .notation = NOTATION_HOST},
	{.field = 1, .flags = LIMIT_REQUIRED, .notation = NOTATION_HOST},
};
static const struct message_limits floating_nat_limits = {
	.type = &corelane__v1__floating_nat__descriptor, .fields = floating_nat_fields, .n_fields = 2};

static const struct field_limits source_nat_fields[] = {
	{.field = 0, .flags = LIMIT_REQUIRED, .notation = NOTATION_PREFIX},
	{.field = 1, .flags = LIMIT_REQUIRED, .notation = NOTATION_HOST},
	{.field = 2, .notation = NOTATION_HOST},
	{.field = 3, .min = 1ull, .max = 65535ull},
	{.field = 4, .min = 1ull, .max = 65535ull},
};
static const struct message_limits source_nat_limits = {
	.type = &corelane__v1__source_nat__descriptor, .fields = source_nat_fields, .n_fields = 5};

static const struct field_limits nat_backend_fields[] = {
	{.field = 0, .flags = LIMIT_REQUIRED, .notation = NOTATION_HOST},
	{.field = 1, .max = 65535ull},
	{.field = 2, .min = 1ull, .max = 256ull},
};
static const struct message_limits nat_backend_limits = {
	.type = &corelane__v1__nat_backend__descriptor, .fields = nat_backend_fields, .n_fields = 3};

static const struct field_limits destination_nat_fields[] = {
	{.field = 0, .flags = LIMIT_REQUIRED, .notation = NOTATION_HOST},
	{.field = 1, .max = 65535ull},
	{.field = 2, .of = &nat_backend_limits, .flags = LIMIT_REQUIRED, .items = 64ull},
};
static const struct message_limits destination_nat_limits = {
	.type = &corelane__v1__destination_nat__descriptor, .fields = destination_nat_fields, .n_fields = 3};

static const struct field_limits nat_rule_fields[] = {
	{.field = 0, .flags = LIMIT_KEY | LIMIT_REQUIRED, .min = 1ull, .max = 1048575ull},
	{.field = 1, .flags = LIMIT_REQUIRED},
	{.field = 3, .of = &floating_nat_limits},
	{.field = 4, .of = &source_nat_limits},
	{.field = 5, .of = &destination_nat_limits},
	{.field = 6, .notation = NOTATION_PREFIX},
	{.field = 7, .flags = LIMIT_DISTINCT, .items = 16ull, .notation = NOTATION_PREFIX},
	{.field = 8},
	{.field = 9, .max = 65535ull},
	{.field = 10, .max = 65535ull},
};
static const struct choice_limits nat_rule_choices[] = {{"kind", 3}};
static const struct message_limits nat_rule_limits = {
	.type = &corelane__v1__nat_rule__descriptor, .fields = nat_rule_fields, .n_fields = 10, .choices = nat_rule_choices, .n_choices = 1};

static const struct field_limits nat_add_request_fields[] = {
	{.field = 0, .of = &nat_rule_limits, .flags = LIMIT_REQUIRED},
};
static const struct message_limits nat_add_request_limits = {
	.type = &corelane__v1__nat_add_request__descriptor, .fields = nat_add_request_fields, .n_fields = 1};

static const struct field_limits nat_set_request_fields[] = {
	{.field = 0, .of = &nat_rule_limits, .flags = LIMIT_REQUIRED},
};
static const struct message_limits nat_set_request_limits = {
	.type = &corelane__v1__nat_set_request__descriptor, .fields = nat_set_request_fields, .n_fields = 1};

static const struct field_limits neighbor_fields[] = {
	{.field = 0, .flags = LIMIT_KEY | LIMIT_REQUIRED},
	{.field = 1, .flags = LIMIT_KEY | LIMIT_REQUIRED, .notation = NOTATION_ADDRESS},
	{.field = 2, .flags = LIMIT_REQUIRED, .notation = NOTATION_MAC},
};
static const struct message_limits neighbor_limits = {
	.type = &corelane__v1__neighbor__descriptor, .fields = neighbor_fields, .n_fields = 3};

static const struct field_limits neighbor_add_request_fields[] = {
	{.field = 0, .of = &neighbor_limits, .flags = LIMIT_REQUIRED},
};
static const struct message_limits neighbor_add_request_limits = {
	.type = &corelane__v1__neighbor_add_request__descriptor, .fields = neighbor_add_request_fields, .n_fields = 1};

static const struct field_limits port_nexthop_fields[] = {
	{.field = 0, .flags = LIMIT_REQUIRED},
	{.field = 1, .notation = NOTATION_ADDRESS},
	{.field = 2, .notation = NOTATION_MAC},
};
static const struct message_limits port_nexthop_limits = {
	.type = &corelane__v1__port_nexthop__descriptor, .fields = port_nexthop_fields, .n_fields = 3};

static const struct field_limits tunnel_nexthop_fields[] = {
	{.field = 0, .flags = LIMIT_REQUIRED, .min = 1ull},
	{.field = 1, .notation = NOTATION_ADDRESS},
	{.field = 2, .flags = LIMIT_REQUIRED, .notation = NOTATION_HOST},
	{.field = 3, .min = 16ull, .max = 1048575ull},
	{.field = 4, .min = 1ull, .max = 16777215ull},
	{.field = 5, .notation = NOTATION_MAC},
	{.field = 6},
	{.field = 7, .max = 63ull},
	{.field = 9, .min = 1ull, .max = 255ull},
	{.field = 12},
};
static const struct message_limits tunnel_nexthop_limits = {
	.type = &corelane__v1__tunnel_nexthop__descriptor, .fields = tunnel_nexthop_fields, .n_fields = 10};

static const struct field_limits group_member_fields[] = {
	{.field = 0, .flags = LIMIT_REQUIRED, .min = 1ull, .max = 1048575ull},
	{.field = 1, .min = 1ull, .max = 256ull},
};
static const struct message_limits group_member_limits = {
	.type = &corelane__v1__group_member__descriptor, .fields = group_member_fields, .n_fields = 2};

static const struct field_limits group_nexthop_fields[] = {
	{.field = 0, .of = &group_member_limits, .flags = LIMIT_REQUIRED, .items = 64ull},
};
static const struct message_limits group_nexthop_limits = {
	.type = &corelane__v1__group_nexthop__descriptor, .fields = group_nexthop_fields, .n_fields = 1};

static const struct field_limits nexthop_fields[] = {
	{.field = 0, .flags = LIMIT_KEY | LIMIT_REQUIRED, .min = 1ull, .max = 1048575ull},
	{.field = 1, .of = &port_nexthop_limits},
	{.field = 2, .of = &tunnel_nexthop_limits},
	{.field = 3, .of = &group_nexthop_limits},
};
static const struct choice_limits nexthop_choices[] = {{"kind", 1}};
static const struct message_limits nexthop_limits = {
	.type = &corelane__v1__nexthop__descriptor, .fields = nexthop_fields, .n_fields = 4, .choices = nexthop_choices, .n_choices = 1};

static const struct field_limits nexthop_add_request_fields[] = {
	{.field = 0, .of = &nexthop_limits, .flags = LIMIT_REQUIRED},
};
static const struct message_limits nexthop_add_request_limits = {
	.type = &corelane__v1__nexthop_add_request__descriptor, .fields = nexthop_add_request_fields, .n_fields = 1};

static const struct field_limits nexthop_add_all_request_fields[] = {
	{.field = 0, .of = &nexthop_limits, .items = 1024ull},
};
static const struct message_limits nexthop_add_all_request_limits = {
	.type = &corelane__v1__nexthop_add_all_request__descriptor, .fields = nexthop_add_all_request_fields, .n_fields = 1};

static const struct field_limits nexthop_del_all_request_fields[] = {
	{.field = 0, .items = 1024ull},
};
static const struct message_limits nexthop_del_all_request_limits = {
	.type = &corelane__v1__nexthop_del_all_request__descriptor, .fields = nexthop_del_all_request_fields, .n_fields = 1};

static const struct field_limits dpdk_device_fields[] = {
	{.field = 0, .flags = LIMIT_REQUIRED, .max = 255ull, .notation = NOTATION_LINE},
};
static const struct message_limits dpdk_device_limits = {
	.type = &corelane__v1__dpdk_device__descriptor, .fields = dpdk_device_fields, .n_fields = 1};

static const struct field_limits tap_device_fields[] = {
	{.field = 0, .notation = NOTATION_INTERFACE},
	{.field = 1, .max = 107ull, .notation = NOTATION_LINE},
};
static const struct message_limits tap_device_limits = {
	.type = &corelane__v1__tap_device__descriptor, .fields = tap_device_fields, .n_fields = 2};

static const struct field_limits memif_device_fields[] = {
	{.field = 0, .flags = LIMIT_REQUIRED, .notation = NOTATION_PATH},
	{.field = 2},
	{.field = 3, .notation = NOTATION_SECRET},
	{.field = 4, .flags = LIMIT_POWER_OF_TWO, .min = 32ull, .max = 16384ull},
	{.field = 5, .min = 128ull, .max = 32768ull, .multiple_of = 64ull},
	{.field = 6, .notation = NOTATION_NAME},
	{.field = 7, .notation = NOTATION_NAME},
	{.field = 8, .notation = NOTATION_MODE},
};
static const struct message_limits memif_device_limits = {
	.type = &corelane__v1__memif_device__descriptor, .fields = memif_device_fields, .n_fields = 8};

static const struct field_limits vhost_device_fields[] = {
	{.field = 0, .flags = LIMIT_REQUIRED, .notation = NOTATION_PATH},
	{.field = 2, .notation = NOTATION_NAME},
	{.field = 3, .notation = NOTATION_NAME},
	{.field = 4, .notation = NOTATION_MODE},
};
static const struct message_limits vhost_device_limits = {
	.type = &corelane__v1__vhost_device__descriptor, .fields = vhost_device_fields, .n_fields = 4};

static const struct field_limits subport_device_fields[] = {
	{.field = 0, .flags = LIMIT_REQUIRED},
	{.field = 1, .flags = LIMIT_REQUIRED, .min = 1ull, .max = 4094ull},
	{.field = 2, .max = 4094ull},
};
static const struct message_limits subport_device_limits = {
	.type = &corelane__v1__subport_device__descriptor, .fields = subport_device_fields, .n_fields = 3};

static const struct field_limits port_fields[] = {
	{.field = 0, .flags = LIMIT_KEY | LIMIT_REQUIRED, .notation = NOTATION_NAME},
	{.field = 1, .flags = LIMIT_REQUIRED, .min = 1ull},
	{.field = 2, .of = &dpdk_device_limits},
	{.field = 3, .of = &tap_device_limits},
	{.field = 4, .of = &memif_device_limits},
	{.field = 5, .of = &vhost_device_limits},
	{.field = 6, .min = 1ull, .max = 16ull},
	{.field = 7, .min = 576ull, .max = 9600ull},
	{.field = 9, .max = 4094ull},
	{.field = 10, .flags = LIMIT_DISTINCT, .items = 16ull, .notation = NOTATION_INTERFACE_ADDRESS},
	{.field = 11, .notation = NOTATION_MAC},
	{.field = 14, .flags = LIMIT_DISTINCT, .items = 16ull, .notation = NOTATION_INTERFACE_ADDRESS},
	{.field = 15, .notation = NOTATION_MAC},
	{.field = 16, .flags = LIMIT_DISTINCT, .items = 16ull, .notation = NOTATION_HOST_OR_PREFIX},
	{.field = 18, .max = 65535ull},
	{.field = 20, .max = 10000ull},
	{.field = 21},
	{.field = 27},
	{.field = 32},
	{.field = 33},
	{.field = 34, .flags = LIMIT_DISTINCT, .items = 64ull, .notation = NOTATION_WEIGHT},
	{.field = 35, .flags = LIMIT_DISTINCT, .items = 16ull, .notation = NOTATION_POLLER},
	{.field = 43, .flags = LIMIT_DISTINCT, .items = 2ull, .notation = NOTATION_INTERFACE_ADDRESS},
	{.field = 44, .flags = LIMIT_DISTINCT, .items = 2ull, .notation = NOTATION_HOST},
	{.field = 45, .flags = LIMIT_DISTINCT, .items = 16ull, .notation = NOTATION_ROUTE},
	{.field = 46, .flags = LIMIT_DISTINCT, .items = 8ull, .notation = NOTATION_HOST},
	{.field = 47, .max = 253ull, .notation = NOTATION_DOMAIN},
	{.field = 48, .max = 63ull, .notation = NOTATION_DOMAIN},
	{.field = 49, .flags = LIMIT_DISTINCT, .items = 8ull, .notation = NOTATION_HOST},
	{.field = 50, .min = 60ull, .max = 31536000ull},
	{.field = 51, .max = 127ull, .notation = NOTATION_LINE},
	{.field = 52, .notation = NOTATION_HOST},
	{.field = 54, .of = &subport_device_limits},
};
static const struct choice_limits port_choices[] = {{"device", 2}};
static const char *const port_settable[] = {"mtu", "disabled", "vlan", "addresses", "vrf", "bridge", "gateways", "guest_mac", "guest_addresses", "proxy_arp", "mss_clamp", "unresolved_rate", "no_anycast_gateway", "stateful", "flow_limit", "flow_rate", "source_check", "allow_router", "allow_dhcp_server", "egress_rules", "ingress_rules", "egress_meter", "ingress_meter", "mirror", "mode", "ring_full", "spread_workers", "polled_by", "dhcp4", "dhcp6", "router_advertisements", "slaac", "boot_addresses", "boot_routers", "boot_routes", "dns_servers", "dns_domain", "host_name", "ntp_servers", "lease_seconds", "boot_file", "boot_server", NULL};
static const struct message_limits port_limits = {
	.type = &corelane__v1__port__descriptor, .fields = port_fields, .n_fields = 33, .choices = port_choices, .n_choices = 1, .settable = port_settable};

static const struct field_limits port_add_request_fields[] = {
	{.field = 0, .of = &port_limits, .flags = LIMIT_REQUIRED},
};
static const struct message_limits port_add_request_limits = {
	.type = &corelane__v1__port_add_request__descriptor, .fields = port_add_request_fields, .n_fields = 1};

static const struct field_limits port_set_request_fields[] = {
	{.field = 0, .of = &port_limits, .flags = LIMIT_REQUIRED | LIMIT_PARTIAL},
};
static const struct message_limits port_set_request_limits = {
	.type = &corelane__v1__port_set_request__descriptor, .fields = port_set_request_fields, .n_fields = 1};

static const struct field_limits port_list_request_fields[] = {
	{.field = 1},
};
static const struct message_limits port_list_request_limits = {
	.type = &corelane__v1__port_list_request__descriptor, .fields = port_list_request_fields, .n_fields = 1};

static const struct field_limits route_fields[] = {
	{.field = 0, .flags = LIMIT_KEY | LIMIT_REQUIRED},
	{.field = 1, .flags = LIMIT_KEY | LIMIT_REQUIRED, .notation = NOTATION_PREFIX},
	{.field = 2, .flags = LIMIT_REQUIRED, .min = 1ull, .max = 1048575ull},
};
static const struct message_limits route_limits = {
	.type = &corelane__v1__route__descriptor, .fields = route_fields, .n_fields = 3};

static const struct field_limits route_add_request_fields[] = {
	{.field = 0, .of = &route_limits, .items = 4096ull},
};
static const struct message_limits route_add_request_limits = {
	.type = &corelane__v1__route_add_request__descriptor, .fields = route_add_request_fields, .n_fields = 1};

static const struct field_limits route_del_request_fields[] = {
	{.field = 0, .of = &route_limits, .flags = LIMIT_PARTIAL, .items = 4096ull},
};
static const struct message_limits route_del_request_limits = {
	.type = &corelane__v1__route_del_request__descriptor, .fields = route_del_request_fields, .n_fields = 1};

static const struct field_limits route_list_request_fields[] = {
	{.field = 1},
	{.field = 2, .notation = NOTATION_PREFIX},
};
static const struct message_limits route_list_request_limits = {
	.type = &corelane__v1__route_list_request__descriptor, .fields = route_list_request_fields, .n_fields = 2};

static const struct field_limits route_lookup_request_fields[] = {
	{.field = 1, .flags = LIMIT_REQUIRED, .notation = NOTATION_ADDRESS},
};
static const struct message_limits route_lookup_request_limits = {
	.type = &corelane__v1__route_lookup_request__descriptor, .fields = route_lookup_request_fields, .n_fields = 1};

static const struct field_limits rule_list_fields[] = {
	{.field = 0, .flags = LIMIT_KEY | LIMIT_REQUIRED, .notation = NOTATION_NAME},
	{.field = 1},
};
static const char *const rule_list_settable[] = {"default_action", NULL};
static const struct message_limits rule_list_limits = {
	.type = &corelane__v1__rule_list__descriptor, .fields = rule_list_fields, .n_fields = 2, .settable = rule_list_settable};

static const struct field_limits rule_list_add_request_fields[] = {
	{.field = 0, .of = &rule_list_limits, .flags = LIMIT_REQUIRED},
};
static const struct message_limits rule_list_add_request_limits = {
	.type = &corelane__v1__rule_list_add_request__descriptor, .fields = rule_list_add_request_fields, .n_fields = 1};

static const struct field_limits rule_list_set_request_fields[] = {
	{.field = 0, .of = &rule_list_limits, .flags = LIMIT_REQUIRED | LIMIT_PARTIAL},
};
static const struct message_limits rule_list_set_request_limits = {
	.type = &corelane__v1__rule_list_set_request__descriptor, .fields = rule_list_set_request_fields, .n_fields = 1};

static const struct field_limits rule_fields[] = {
	{.field = 0, .flags = LIMIT_KEY | LIMIT_REQUIRED},
	{.field = 1, .flags = LIMIT_KEY | LIMIT_REQUIRED, .min = 1ull, .max = 16777216ull},
	{.field = 2, .flags = LIMIT_REQUIRED},
	{.field = 3, .notation = NOTATION_PROTOCOL},
	{.field = 4, .notation = NOTATION_PREFIX_OR_ANY},
	{.field = 5, .notation = NOTATION_PREFIX_OR_ANY},
	{.field = 8, .notation = NOTATION_PORT_RANGE},
	{.field = 9, .notation = NOTATION_PORT_RANGE},
	{.field = 10, .notation = NOTATION_ICMP_RANGE},
	{.field = 11, .notation = NOTATION_ICMP_RANGE},
};
static const struct message_limits rule_limits = {
	.type = &corelane__v1__rule__descriptor, .fields = rule_fields, .n_fields = 10};

static const struct field_limits rule_add_request_fields[] = {
	{.field = 0, .of = &rule_limits, .items = 4096ull},
};
static const struct message_limits rule_add_request_limits = {
	.type = &corelane__v1__rule_add_request__descriptor, .fields = rule_add_request_fields, .n_fields = 1};

static const struct field_limits rule_del_request_fields[] = {
	{.field = 0, .of = &rule_limits, .flags = LIMIT_PARTIAL, .items = 4096ull},
};
static const struct message_limits rule_del_request_limits = {
	.type = &corelane__v1__rule_del_request__descriptor, .fields = rule_del_request_fields, .n_fields = 1};

static const struct field_limits rule_explain_request_fields[] = {
	{.field = 1},
	{.field = 5, .max = 65535ull},
	{.field = 6, .max = 65535ull},
	{.field = 7, .max = 255ull},
	{.field = 8, .max = 255ull},
};
static const struct message_limits rule_explain_request_limits = {
	.type = &corelane__v1__rule_explain_request__descriptor, .fields = rule_explain_request_fields, .n_fields = 5};

static const struct field_limits address_group_fields[] = {
	{.field = 0, .flags = LIMIT_KEY | LIMIT_REQUIRED, .notation = NOTATION_NAME},
	{.field = 1, .flags = LIMIT_DISTINCT, .items = 4096ull, .notation = NOTATION_PREFIX},
};
static const char *const address_group_settable[] = {"prefixes", NULL};
static const struct message_limits address_group_limits = {
	.type = &corelane__v1__address_group__descriptor, .fields = address_group_fields, .n_fields = 2, .settable = address_group_settable};

static const struct field_limits address_group_add_request_fields[] = {
	{.field = 0, .of = &address_group_limits, .flags = LIMIT_REQUIRED},
};
static const struct message_limits address_group_add_request_limits = {
	.type = &corelane__v1__address_group_add_request__descriptor, .fields = address_group_add_request_fields, .n_fields = 1};

static const struct field_limits address_group_set_request_fields[] = {
	{.field = 0, .of = &address_group_limits, .flags = LIMIT_REQUIRED | LIMIT_PARTIAL},
};
static const struct message_limits address_group_set_request_limits = {
	.type = &corelane__v1__address_group_set_request__descriptor, .fields = address_group_set_request_fields, .n_fields = 1};

static const struct field_limits service_fields[] = {
	{.field = 0, .flags = LIMIT_KEY | LIMIT_REQUIRED, .notation = NOTATION_NAME},
	{.field = 1, .flags = LIMIT_REQUIRED},
	{.field = 3, .flags = LIMIT_REQUIRED, .notation = NOTATION_HOST},
	{.field = 4},
	{.field = 5, .max = 65535ull},
	{.field = 6},
	{.field = 7, .min = 1ull, .max = 1000ull},
	{.field = 8},
	{.field = 9, .max = 128ull},
};
static const char *const service_settable[] = {"scheduler", "no_endpoints", "client_prefix", NULL};
static const struct message_limits service_limits = {
	.type = &corelane__v1__service__descriptor, .fields = service_fields, .n_fields = 9, .settable = service_settable};

static const struct field_limits service_add_request_fields[] = {
	{.field = 0, .of = &service_limits, .flags = LIMIT_REQUIRED},
};
static const struct message_limits service_add_request_limits = {
	.type = &corelane__v1__service_add_request__descriptor, .fields = service_add_request_fields, .n_fields = 1};

static const struct field_limits service_set_request_fields[] = {
	{.field = 0, .of = &service_limits, .flags = LIMIT_REQUIRED | LIMIT_PARTIAL},
};
static const struct message_limits service_set_request_limits = {
	.type = &corelane__v1__service_set_request__descriptor, .fields = service_set_request_fields, .n_fields = 1};

static const struct field_limits endpoint_fields[] = {
	{.field = 0, .flags = LIMIT_KEY | LIMIT_REQUIRED},
	{.field = 1, .flags = LIMIT_KEY | LIMIT_REQUIRED, .notation = NOTATION_HOST},
	{.field = 2, .flags = LIMIT_KEY | LIMIT_REQUIRED, .max = 65535ull},
	{.field = 3, .max = 256ull},
};
static const char *const endpoint_settable[] = {"weight", NULL};
static const struct message_limits endpoint_limits = {
	.type = &corelane__v1__endpoint__descriptor, .fields = endpoint_fields, .n_fields = 4, .settable = endpoint_settable};

static const struct field_limits endpoint_add_request_fields[] = {
	{.field = 0, .of = &endpoint_limits, .flags = LIMIT_REQUIRED},
};
static const struct message_limits endpoint_add_request_limits = {
	.type = &corelane__v1__endpoint_add_request__descriptor, .fields = endpoint_add_request_fields, .n_fields = 1};

static const struct field_limits endpoint_set_request_fields[] = {
	{.field = 0, .of = &endpoint_limits, .flags = LIMIT_REQUIRED | LIMIT_PARTIAL},
};
static const struct message_limits endpoint_set_request_limits = {
	.type = &corelane__v1__endpoint_set_request__descriptor, .fields = endpoint_set_request_fields, .n_fields = 1};

static const struct field_limits hello_request_fields[] = {
	{.field = 3, .notation = NOTATION_NAME},
};
static const struct message_limits hello_request_limits = {
	.type = &corelane__v1__hello_request__descriptor, .fields = hello_request_fields, .n_fields = 1};

static const struct field_limits settings_fields[] = {
	{.field = 0, .flags = LIMIT_REQUIRED | LIMIT_DISTINCT, .min = 1ull, .max = 65535ull, .items = 8ull},
	{.field = 1, .flags = LIMIT_REQUIRED | LIMIT_DISTINCT, .min = 1ull, .max = 65535ull, .items = 8ull},
	{.field = 2, .flags = LIMIT_REQUIRED, .min = 10ull, .max = 1000000ull},
	{.field = 3, .flags = LIMIT_REQUIRED, .min = 1ull, .max = 1000000ull},
	{.field = 4, .max = 1000000ull},
	{.field = 5, .flags = LIMIT_REQUIRED, .min = 1ull, .max = 16ull},
	{.field = 6, .flags = LIMIT_REQUIRED, .min = 1ull, .max = 43200ull},
	{.field = 7, .flags = LIMIT_REQUIRED, .min = 1ull, .max = 43200ull},
	{.field = 8, .flags = LIMIT_REQUIRED, .min = 1ull, .max = 43200ull},
	{.field = 9, .flags = LIMIT_REQUIRED, .min = 1ull, .max = 43200ull},
	{.field = 10, .flags = LIMIT_REQUIRED, .min = 1ull, .max = 43200ull},
	{.field = 11, .flags = LIMIT_REQUIRED, .min = 1ull, .max = 43200ull},
	{.field = 12, .flags = LIMIT_REQUIRED, .min = 1ull, .max = 43200ull},
	{.field = 13, .flags = LIMIT_REQUIRED, .min = 1ull, .max = 43200ull},
	{.field = 15, .max = 3600ull},
	{.field = 16, .flags = LIMIT_REQUIRED | LIMIT_DISTINCT, .min = 1ull, .max = 65535ull, .items = 8ull},
	{.field = 17, .flags = LIMIT_REQUIRED, .min = 1ull, .max = 100000000ull},
	{.field = 19, .items = 4ull},
};
static const char *const settings_settable[] = {"mplsoudp_ports", "vxlan_ports", "geneve_ports", "mac_age_seconds", "neighbor_age_seconds", "icmp_errors_per_second", "flood_copies_per_second", "label_stack_depth", "flow_tcp_half_open_seconds", "flow_tcp_established_seconds", "flow_tcp_closing_seconds", "flow_udp_seconds", "flow_udp_answered_seconds", "flow_icmp_seconds", "flow_other_seconds", "flow_denied_seconds", "rebalance_seconds", "flow_tcp_strict", "accept_udp6_zero", "service_key", NULL};
static const struct message_limits settings_limits = {
	.type = &corelane__v1__settings__descriptor, .fields = settings_fields, .n_fields = 18, .settable = settings_settable};

static const struct field_limits settings_set_request_fields[] = {
	{.field = 0, .of = &settings_limits, .flags = LIMIT_REQUIRED | LIMIT_PARTIAL},
};
static const struct message_limits settings_set_request_limits = {
	.type = &corelane__v1__settings_set_request__descriptor, .fields = settings_set_request_fields, .n_fields = 1};

static const struct field_limits vni_fields[] = {
	{.field = 0, .flags = LIMIT_KEY | LIMIT_REQUIRED, .min = 1ull, .max = 16777215ull},
	{.field = 1, .flags = LIMIT_REQUIRED},
	{.field = 2, .flags = LIMIT_REQUIRED},
	{.field = 3, .flags = LIMIT_REQUIRED, .min = 1ull, .max = 1048575ull},
};
static const struct choice_limits vni_choices[] = {{"target", 1}};
static const struct message_limits vni_limits = {
	.type = &corelane__v1__vni__descriptor, .fields = vni_fields, .n_fields = 4, .choices = vni_choices, .n_choices = 1};

static const struct field_limits vni_add_request_fields[] = {
	{.field = 0, .of = &vni_limits, .flags = LIMIT_REQUIRED},
};
static const struct message_limits vni_add_request_limits = {
	.type = &corelane__v1__vni_add_request__descriptor, .fields = vni_add_request_fields, .n_fields = 1};

static const struct field_limits vrf_fields[] = {
	{.field = 0, .flags = LIMIT_KEY | LIMIT_REQUIRED, .notation = NOTATION_NAME},
	{.field = 1, .min = 1ull, .max = 16383ull},
};
static const struct message_limits vrf_limits = {
	.type = &corelane__v1__vrf__descriptor, .fields = vrf_fields, .n_fields = 2};

static const struct field_limits vrf_add_request_fields[] = {
	{.field = 0, .of = &vrf_limits, .flags = LIMIT_REQUIRED},
};
static const struct message_limits vrf_add_request_limits = {
	.type = &corelane__v1__vrf_add_request__descriptor, .fields = vrf_add_request_fields, .n_fields = 1};

static const struct field_limits worker_fields[] = {
	{.field = 0, .flags = LIMIT_KEY | LIMIT_REQUIRED, .max = 63ull},
	{.field = 1, .flags = LIMIT_REQUIRED},
	{.field = 2},
	{.field = 4},
	{.field = 5, .notation = NOTATION_WORKER},
	{.field = 6, .flags = LIMIT_POWER_OF_TWO, .min = 64ull, .max = 4194304ull},
	{.field = 7, .min = 1ull, .max = 100000ull},
	{.field = 8, .min = 1ull, .max = 10000000ull},
};
static const char *const worker_settable[] = {"cpu", "idle", "role", "target", "ring_size", "sleep_max_us", "loop_threshold_us", NULL};
static const struct message_limits worker_limits = {
	.type = &corelane__v1__worker__descriptor, .fields = worker_fields, .n_fields = 8, .settable = worker_settable};

static const struct field_limits worker_add_request_fields[] = {
	{.field = 0, .of = &worker_limits, .flags = LIMIT_REQUIRED},
};
static const struct message_limits worker_add_request_limits = {
	.type = &corelane__v1__worker_add_request__descriptor, .fields = worker_add_request_fields, .n_fields = 1};

static const struct field_limits worker_set_request_fields[] = {
	{.field = 0, .of = &worker_limits, .flags = LIMIT_REQUIRED | LIMIT_PARTIAL},
};
static const struct message_limits worker_set_request_limits = {
	.type = &corelane__v1__worker_set_request__descriptor, .fields = worker_set_request_fields, .n_fields = 1};

const struct message_limits *const api_requests[] = {
	&bridge_add_request_limits,
	&bridge_set_request_limits,
	&mac_add_request_limits,
	&mac_add_all_request_limits,
	&capture_request_limits,
	&trace_request_limits,
	&debug_delay_request_limits,
	&debug_disturb_request_limits,
	&event_list_request_limits,
	&flow_filter_limits,
	&flow_resize_request_limits,
	&flow_explain_request_limits,
	&generator_profile_limits,
	&generator_trial_limits,
	&host_steer_add_request_limits,
	&label_add_request_limits,
	&meter_add_request_limits,
	&meter_set_request_limits,
	&mirror_add_request_limits,
	&mirror_set_request_limits,
	&nat_add_request_limits,
	&nat_set_request_limits,
	&neighbor_add_request_limits,
	&nexthop_add_request_limits,
	&nexthop_add_all_request_limits,
	&nexthop_del_all_request_limits,
	&port_add_request_limits,
	&port_set_request_limits,
	&port_list_request_limits,
	&route_add_request_limits,
	&route_del_request_limits,
	&route_list_request_limits,
	&route_lookup_request_limits,
	&rule_list_add_request_limits,
	&rule_list_set_request_limits,
	&rule_add_request_limits,
	&rule_del_request_limits,
	&rule_explain_request_limits,
	&address_group_add_request_limits,
	&address_group_set_request_limits,
	&service_add_request_limits,
	&service_set_request_limits,
	&endpoint_add_request_limits,
	&endpoint_set_request_limits,
	&hello_request_limits,
	&settings_set_request_limits,
	&vni_add_request_limits,
	&vrf_add_request_limits,
	&worker_add_request_limits,
	&worker_set_request_limits,
};
const unsigned n_api_requests = sizeof(api_requests) / sizeof(api_requests[0]);
