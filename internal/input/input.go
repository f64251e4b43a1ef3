// SPDX-License-Identifier: Apache-2.0

// Package input has the error of wrong input: where it is, what is wrong and what is valid, in one line. Programs exit
// with status 2 on it.
package input

import (
	"errors"
	"fmt"
	"math/big"
)

// Error refuses a value: of a flag, a line of a file, or a setting of this machine.
type Error struct {
	Field string // where: "--cpu", "plan.yaml:7: forwarding"
	Text  string // what is wrong
	Valid string // what is valid; may be empty
}

func (e *Error) Error() string {
	if e.Valid == "" {
		return e.Field + ": " + e.Text
	}
	return e.Field + ": " + e.Text + "; valid: " + e.Valid
}

// Errorf makes an Error.
func Errorf(field, valid, format string, args ...any) error {
	return &Error{field, fmt.Sprintf(format, args...), valid}
}

// NotNumber makes the Error of text that is not one of the numbers that valid describes.
func NotNumber(field, valid, text string) error {
	if _, ok := new(big.Int).SetString(text, 10); ok {
		return Errorf(field, valid, "'%s' is out of range", text)
	}
	return Errorf(field, valid, "'%s' is not a number", text)
}

// Is reports whether err is about wrong input rather than about a failure with right input.
func Is(err error) bool {
	var e *Error
	return errors.As(err, &e)
}
