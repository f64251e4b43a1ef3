// SPDX-License-Identifier: Apache-2.0
package router

// All lists the routers that can be measured.
func All() []Router {
	return []Router{
		&Corelane{},
		&Testpmd{},
		&OVS{},
		&Linux{},
	}
}
