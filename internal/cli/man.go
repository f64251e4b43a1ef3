// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"
)

// newManCmd writes the manual pages; tools/install.sh runs it.
func newManCmd() *cobra.Command {
	var cmd *cobra.Command
	cmd = verb("man DIR", "Write the manual pages", "  corelane man /usr/share/man/man1",
		func(_ context.Context, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			node, err := nodeManual(cmd.Root())
			if err != nil {
				return err
			}
			cmd.Root().DisableAutoGenTag = true
			asMarkdown(cmd.Root())
			pages := map[string]*bytes.Buffer{nodePage: bytes.NewBuffer(node)}
			if err := manualPages(cmd.Root(), pages); err != nil {
				return err
			}
			for name, page := range pages {
				if err := os.WriteFile(filepath.Join(args[0], name), page.Bytes(), 0o644); err != nil {
					return err
				}
			}
			return nil
		})
	cmd.Hidden = true
	return cmd
}

// manualPages makes the pages of a command and of those below it, by their names. Commands with the same name share a
// page, such as the noun "rule-list" and the verb "rule list".
func manualPages(cmd *cobra.Command, pages map[string]*bytes.Buffer) error {
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() && !c.IsAdditionalHelpTopicCommand() {
			if err := manualPages(c, pages); err != nil {
				return err
			}
		}
	}
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-") + ".1"
	if pages[name] == nil {
		pages[name] = &bytes.Buffer{}
	}
	header := &doc.GenManHeader{Section: "1", Source: "Corelane " + Version, Manual: "Corelane"}
	return doc.GenMan(cmd, header, pages[name])
}

// The characters that have a meaning in Markdown, and the plain ones.
var escapeMarkdown = strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`,
	"<", `\<`, ">", `\>`, "#", `\#`)

// asMarkdown rewrites the texts of a command and of those below it, because package doc reads them as Markdown: as they
// are, it would take "[PORT](IPv6)" for a link and "# comment" for a heading, and would fill lists into paragraphs.
func asMarkdown(cmd *cobra.Command) {
	cmd.Short, cmd.Long = escapeMarkdown.Replace(cmd.Short), markdownOf(cmd.Long)
	cmd.NonInheritedFlags().VisitAll(func(f *pflag.Flag) { f.Usage = escapeMarkdown.Replace(f.Usage) })
	for _, c := range cmd.Commands() {
		asMarkdown(c)
	}
}

// markdownOf makes the indented lines of a text a block that is not filled.
func markdownOf(text string) string {
	var b strings.Builder
	block := false
	for _, line := range strings.Split(text, "\n") {
		if indented := strings.HasPrefix(line, "  "); indented != block {
			block = indented
			b.WriteByte('\n')
		}
		if block {
			b.WriteString("    " + line + "\n")
		} else {
			b.WriteString(escapeMarkdown.Replace(line) + "\n")
		}
	}
	return strings.TrimSpace(b.String())
}
