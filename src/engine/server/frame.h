// Cuts the byte stream of a connection into frames. Lengths are checked before a byte of payload is buffered.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <stdexcept>
#include <vector>

#include "protocol/messages.h"

namespace pgwarp
{

// The peer doesn't keep to the protocol: its connection is dropped.
struct Malformed : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct Frame {
    MessageHeader header;
    std::span<const std::byte> payload;  // aligned to 8 bytes
};

// Checks a request's header: magic, a known type, a length that this type can have. Throws Malformed.
void check_header(const MessageHeader& header);

class FrameReader
{
public:
    // Room to read into; never empty. Invalidates the frames given out.
    std::span<std::byte> space();
    void filled(std::size_t bytes) { end_ += bytes; }

    // The next whole frame, if there is one. Throws Malformed.
    std::optional<Frame> next();

    // Bytes not yet given out as frames.
    std::size_t pending() const { return end_ - begin_; }

private:
    void move_to_front();

    std::vector<std::byte> buffer_;
    std::size_t begin_ = 0;
    std::size_t end_ = 0;
    std::size_t wanted_ = 0;  // bytes of the frame being received, header included
};

}  // namespace pgwarp
