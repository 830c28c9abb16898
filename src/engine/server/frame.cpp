#include "engine/server/frame.h"

#include <cstring>
#include <string>

namespace pgwarp
{

namespace
{

constexpr std::size_t header_bytes = sizeof(MessageHeader);
constexpr std::size_t idle_capacity = 8192;  // bytes that a connection keeps between large frames

struct PayloadLimits {
    std::size_t least;
    std::size_t most;
};

// The lengths of requests of this type; nothing for a type that is no request.
std::optional<PayloadLimits> payload_limits(MessageType type)
{
    constexpr std::size_t most = max_payload;
    switch (type) {
        case MessageType::hello:
            return PayloadLimits{sizeof(HelloRequest), sizeof(HelloRequest)};
        case MessageType::search:
            return PayloadLimits{sizeof(SearchRequest), most};
        case MessageType::load_begin:
            return PayloadLimits{sizeof(LoadBeginRequest), most};
        case MessageType::load_chunk:
            return PayloadLimits{sizeof(LoadChunkRequest), most};
        case MessageType::load_end:
        case MessageType::load_prepare:
            return PayloadLimits{sizeof(MirrorRequest), sizeof(MirrorRequest)};
        case MessageType::load_delta:
            return PayloadLimits{sizeof(LoadDeltaRequest), most};
        case MessageType::load_tombstones:
            return PayloadLimits{sizeof(LoadTombstonesRequest), most};
        case MessageType::load_tids:
            return PayloadLimits{sizeof(LoadTidsRequest), most};
        case MessageType::build_begin:
            return PayloadLimits{sizeof(BuildBeginRequest), sizeof(BuildBeginRequest)};
        case MessageType::build_rows:
            return PayloadLimits{sizeof(BuildRowsRequest), most};
        case MessageType::build_run:
            return PayloadLimits{sizeof(BuildRequest), sizeof(BuildRequest)};
        case MessageType::build_read:
            return PayloadLimits{sizeof(BuildReadRequest), sizeof(BuildReadRequest)};
        case MessageType::build_array:
            return PayloadLimits{sizeof(BuildArrayRequest), most};
        case MessageType::build_end:
            return PayloadLimits{sizeof(BuildRequest), sizeof(BuildRequest)};
        case MessageType::lease_buffer:
            return PayloadLimits{sizeof(LeaseBufferRequest), sizeof(LeaseBufferRequest)};
        case MessageType::return_buffer:
            return PayloadLimits{sizeof(ReturnBufferRequest), sizeof(ReturnBufferRequest)};
        case MessageType::status:
            return PayloadLimits{0, 0};
        case MessageType::release:
            return PayloadLimits{sizeof(MirrorRequest), sizeof(MirrorRequest)};
        case MessageType::search_indexes:
            return PayloadLimits{sizeof(SearchIndexesRequest), max_payload};
        default:
            return std::nullopt;
    }
}

}  // namespace

void check_header(const MessageHeader& header)
{
    if (header.magic != protocol_magic) throw Malformed("not a pgwarp message");
    const auto limits = payload_limits(static_cast<MessageType>(header.type));
    if (!limits) throw Malformed("unknown message type " + std::to_string(header.type));
    if (header.payload_bytes < limits->least || header.payload_bytes > limits->most) {
        throw Malformed("message of type " + std::to_string(header.type) + " with " +
                        std::to_string(header.payload_bytes) + " bytes");
    }
}

void FrameReader::move_to_front()
{
    if (begin_ == 0) return;
    std::memmove(buffer_.data(), buffer_.data() + begin_, pending());
    end_ -= begin_;
    begin_ = 0;
}

std::span<std::byte> FrameReader::space()
{
    if (pending() == 0) {
        begin_ = end_ = 0;
        if (buffer_.size() > idle_capacity && wanted_ == 0) {
            buffer_.resize(idle_capacity);
            buffer_.shrink_to_fit();
        }
    }
    const std::size_t needed = wanted_ > idle_capacity ? wanted_ : idle_capacity;
    if (begin_ + needed > buffer_.size()) move_to_front();
    if (buffer_.size() < needed) buffer_.resize(needed);
    if (end_ == buffer_.size()) {
        move_to_front();
        if (end_ == buffer_.size()) buffer_.resize(end_ + idle_capacity);
    }
    return std::span(buffer_).subspan(end_);
}

std::optional<Frame> FrameReader::next()
{
    if (pending() < header_bytes) return std::nullopt;
    Frame frame{};
    std::memcpy(&frame.header, buffer_.data() + begin_, header_bytes);
    check_header(frame.header);
    const std::size_t total = header_bytes + frame.header.payload_bytes;
    if (pending() < total) {
        wanted_ = total;
        return std::nullopt;
    }
    if (begin_ % 8 != 0) move_to_front();
    frame.payload = std::span(buffer_).subspan(begin_ + header_bytes, frame.header.payload_bytes);
    begin_ += total;
    wanted_ = 0;
    return frame;
}

}  // namespace pgwarp
