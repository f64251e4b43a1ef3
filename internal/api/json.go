// SPDX-License-Identifier: Apache-2.0
package api

import (
	"bytes"
	"encoding/json"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// JSON is a message on one line, with the names of the API. all includes the fields that are not set.
func JSON(m proto.Message, all bool) ([]byte, error) {
	text, err := protojson.MarshalOptions{UseProtoNames: true, EmitUnpopulated: all}.Marshal(m)
	if err != nil {
		return nil, err
	}
	var line bytes.Buffer
	err = json.Compact(&line, text) // protojson adds spaces at random
	return line.Bytes(), err
}
