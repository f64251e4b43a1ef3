// SPDX-License-Identifier: Apache-2.0
package explain

var smallBatches = row{
	kind: SmallBatches, colour: "other", part: true,
	means:    "few packets per poll, each of which costs more",
	known:    "loops and packets",
	describe: func(_ *scene, c *Cause) { c.Title = "polls brought few packets at once" },
	noRemedy: "nothing is lost by it: a worker with more to do gets larger batches",
}
