// SPDX-License-Identifier: Apache-2.0
// What the tests of hostile vhost-user guests share: a port and its guest.
#pragma once

#include "port/port.h"
#include "port/vhost_guest.h"

#define RX 0 // the guest's first rings
#define TX 1
#define MIB (1u << 20)

extern char dir[]; // of the sockets
extern struct guest g;
extern struct port *port;

struct port *open_port(const char *name);
int connect_one(unsigned pairs); // opens the port; its guest's first frames have been received
int connect_guest(void **state); // with one pair
int disconnect_guest(void **state);
void drain(unsigned wanted);                            // receives as many frames
void frame_arrives(struct port *p, struct guest *from); // of 60 bytes
void serves(void);                                      // the port still works
int start_hostile(void **state);                        // of the group
int stop_hostile(void **state);

#define with_guest(test) cmocka_unit_test_setup_teardown(test, connect_guest, disconnect_guest)
