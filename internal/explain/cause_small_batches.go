// SPDX-License-Identifier: Apache-2.0
package explain

var smallBatches = row{
	kind: SmallBatches, colour: "other", part: "small batches",
	means: "polls brought few packets, so that each cost more",
	known: "loops and packets of the worker",
}
