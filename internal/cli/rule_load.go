// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/corelane/corelane/internal/api"
	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/input"
)

// ruleBatch is how many rules one request may hold.
const ruleBatch = 4096

func newRuleLoad(a *app) *cobra.Command {
	var replace bool
	cmd := verb("load LIST FILE", "Add the rules of a file",
		"  corelane rule load web rules.txt\n  corelane rule load web - --replace",
		func(ctx context.Context, args []string) error {
			return a.loadRules(ctx, args[0], args[1], replace)
		})
	cmd.Long = `Add the rules of a file, or of standard input with -. A line is what "corelane rule add LIST" takes:
  100 allow --protocol tcp --destination-ports 80
# starts a comment. The whole file is checked before anything is sent. Rules are sent in batches of 4096; each batch is
added as a whole or not at all.`
	cmd.Flags().BoolVar(&replace, "replace", false, "replace existing rules of the same IDs (default: refuse)")
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, prefix string) ([]string,
		cobra.ShellCompDirective) {
		if len(args) == 0 {
			return a.offer(cmd.Context(), ruleListNames, prefix), cobra.ShellCompDirectiveNoFileComp
		}
		return nil, cobra.ShellCompDirectiveDefault
	}
	return cmd
}

func (a *app) loadRules(ctx context.Context, list, file string, replace bool) error {
	in := a.stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return input.Errorf("file", "a file, or - for standard input", "%v", err)
		}
		defer f.Close()
		in = f
	}
	rules, lines, err := readRules(list, file, in)
	if err != nil {
		return err
	}
	total := &apiv1.RuleReply{}
	for start := 0; start < len(rules); start += ruleBatch {
		batch := rules[start:min(start+ruleBatch, len(rules))]
		reply, err := call(ctx, a, apiv1.NewRulesClient, apiv1.RulesClient.Add,
			&apiv1.RuleAddRequest{Rules: batch, Replace: replace})
		if err != nil {
			var refused *api.Error
			if errors.As(err, &refused) && int(refused.Index) < len(batch) {
				err = fmt.Errorf("%s:%d: %w", file, lines[start+int(refused.Index)], err)
			}
			return fmt.Errorf("%w (%d rules before it were added, none after)", err, total.Changed)
		}
		total.Changed += reply.Changed
		total.Shadowed += reply.Shadowed
		total.Some = append(total.Some, reply.Some...)
	}
	a.warnShadowed(total)
	return a.done(total, nil)
}

// readRules also gives the line of each rule.
func readRules(list, name string, in io.Reader) (rules []*apiv1.Rule, at []int, err error) {
	lines := bufio.NewScanner(in)
	seen := map[uint32]int{}
	for n := 1; lines.Scan(); n++ {
		rule, err := parseRuleLine(lines.Text())
		if err == nil && rule != nil && seen[rule.Id] != 0 {
			err = input.Errorf("id", "each ID once", "'%d' twice: it is in line %d already", rule.Id, seen[rule.Id])
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%s:%d: %w", name, n, err)
		}
		if rule == nil {
			continue
		}
		rule.List = list
		seen[rule.Id] = n
		rules, at = append(rules, rule), append(at, n)
	}
	return rules, at, lines.Err()
}

// parseRuleLine reads "ID ACTION [--flag value]... [# comment]"; nil for a line without a rule.
func parseRuleLine(line string) (*apiv1.Rule, error) {
	line, _, _ = strings.Cut(line, "#")
	words := strings.Fields(line)
	if len(words) == 0 {
		return nil, nil
	}
	rule := &apiv1.Rule{}
	flags := pflag.NewFlagSet("rule", pflag.ContinueOnError)
	for _, f := range ruleFlags {
		f.add(flags, rule)
	}
	if err := flags.Parse(words); err != nil {
		cmd := &cobra.Command{}
		cmd.Flags().AddFlagSet(flags)
		return nil, flagError(cmd, err)
	}
	switch args := flags.Args(); {
	case len(args) < 2:
		return nil, input.Errorf("line", "ID ACTION [--FLAG VALUE]...", "'%s' is not a rule", strings.Join(words, " "))
	case len(args) > 2:
		return nil, input.Errorf("line", "ID ACTION [--FLAG VALUE]...", "'%s' is one too many", args[2])
	default:
		return rule, ruleHead(rule, args)
	}
}
