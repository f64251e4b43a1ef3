// SPDX-License-Identifier: Apache-2.0
package explain

var smallBatches = row{
	kind: SmallBatches, colour: "other", part: true,
	means:    "polls brought few packets, so that each cost more",
	known:    "loops and packets of the worker",
	describe: func(_ *scene, c *Cause) { c.Title = "polls brought few packets at once" },
	noRemedy: "nothing is lost: under more load the batches become larger",
}
