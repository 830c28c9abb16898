// The socket to pgwarp-engine and the frames on it. Waits obey interrupts; this file does not parse messages.
#pragma once

#include "postgres/postgres_headers.h"

extern "C" {
#include "datatype/timestamp.h"
#include "storage/latch.h"
}

#include "postgres/client/request_result.h"

namespace pgwarp
{

// A connection's socket and receive buffer. The buffer lies in TopMemoryContext and is kept when the socket closes.
struct EngineSocket {
    pgsocket descriptor;    // PGINVALID_SOCKET = closed
    int passed_descriptor;  // received with bytes and not taken yet; -1 = none
    WaitEventSet* events;   // latch, postmaster death and the socket
    int socket_event;       // position of the socket in it
    uint32 watched;         // events of the socket that are waited for
    char* received;         // the last returned frame, then the bytes received after it
    uint32 capacity;
    uint32 filled;
    uint32 given;         // bytes of the last returned frame
    uint32 poll_hint_ns;  // how long the next wait for bytes polls before it blocks
};

enum class SendResult { sent, nothing_sent, lost };

// no_descriptors: the process has too few file descriptors left for a connection.
enum class ConnectResult { connected, nobody, no_descriptors };

// Tries once to connect a closed socket to the engine in the data directory, and checks that the peer belongs to the
// server's own user. Unless it connects, the socket stays closed, also when an error is raised.
ConnectResult connect_socket(EngineSocket* socket);
// Whether an engine of the server's own user listens there.
bool engine_answers();
// Closes the socket, also one that is only partly open.
void close_socket(EngineSocket* socket);

// Sends a header and the pieces. nothing_sent: the peer closed the connection before the first byte was sent.
SendResult send_frame(EngineSocket* socket, const MessageHeader& header, const RequestPiece* pieces, int piece_count);

// The same without waiting; false unless the socket took all bytes.
bool send_frame_at_once(EngineSocket* socket, const MessageHeader& header, const RequestPiece& piece);

// Receives the next whole frame; false when the connection is lost or `deadline` (0 = none) has passed. The payload, at
// socket->received behind the header, stays valid until the next call. With take_descriptor a descriptor that comes
// along is kept for take_passed_descriptor(); otherwise it is not received.
bool receive_frame(EngineSocket* socket, MessageHeader* header, TimestampTz deadline, bool take_descriptor);
// Returns the descriptor that came with the last frame; the caller owns it. -1 when none came.
int take_passed_descriptor(EngineSocket* socket);

// Sleeps a little, obeying interrupts.
void sleep_interruptibly(long milliseconds);

}  // namespace pgwarp
