package main

import (
	"hash"
	"io"
)

// Request body that arrives in pieces with pauses, and whose bytes depend on a number.
type slowBody struct {
	load   *load
	number int64
	digest hash.Hash
	// Number of the pieces that have been read, and the rest of the last one.
	pieces int
	rest   []byte
}

func (body *slowBody) Read(buffer []byte) (int, error) {
	if len(body.rest) == 0 {
		if body.pieces == uploadPieces {
			return 0, io.EOF
		}
		if body.pieces > 0 {
			body.load.pause(uploadPause)
		}
		body.rest = body.piece()
		body.digest.Write(body.rest)
		body.pieces++
	}
	count := copy(buffer, body.rest)
	body.rest = body.rest[count:]
	return count, nil
}

func (body *slowBody) piece() []byte {
	piece := make([]byte, pieceSize)
	state := uint64(body.number)<<32 | uint64(body.pieces)
	for at := range piece {
		state = state*6364136223846793005 + 1442695040888963407
		piece[at] = byte(state >> 56)
	}
	return piece
}
