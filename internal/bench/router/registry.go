// SPDX-License-Identifier: Apache-2.0
package router

// All routers that can be measured.
func All() []Router {
	return []Router{
		&Corelane{},
		&Testpmd{},
		&OVS{},
		&Linux{},
	}
}
