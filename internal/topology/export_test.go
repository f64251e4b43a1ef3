// SPDX-License-Identifier: Apache-2.0
package topology

// Texts returns the files of a tree.
func Texts(t *Memory) map[string]string {
	all := map[string]string{}
	for name, n := range t.nodes {
		if !n.dir && n.link == "" {
			all[name] = n.text
		}
	}
	return all
}

// Replace replaces the text of a file.
func (t *Memory) Replace(name, text string) { t.nodes[name].text = text }
