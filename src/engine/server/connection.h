// One client: its socket, received bytes, unsent replies, and state of the protocol. Used by its I/O thread only.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/mirror/mirror.h"
#include "engine/search/search_queue.h"
#include "engine/server/busy_poll.h"
#include "engine/server/file_descriptor.h"
#include "engine/server/frame.h"
#include "engine/server/sent_bitmaps.h"
#include "engine/server/transfer_buffers.h"

namespace pgwarp
{

// Tombstones that a connection is sending piece by piece.
struct StagedTombstones {
    bool active = false;
    MirrorKey key{};
    std::uint64_t version = 0;
    Tombstones values;
};

class Connection
{
public:
    Connection(FileDescriptor socket, std::uint64_t id);

    int fd() const { return socket_.get(); }
    std::uint64_t id() const { return id_; }
    bool closed() const { return !socket_; }
    void close() { socket_.reset(); }

    enum class ReadState { nothing, data, ended };
    // Calls recv() once.
    ReadState read();
    FrameReader& reader() { return reader_; }

    // Sends a frame of the header, `front` and `rest`, and keeps the bytes that the socket doesn't take. The descriptor
    // of `keep` goes with the first byte and stays open until then. poll_hint_ns is the header's. False when the peer
    // is gone, or the rest of a begun frame cannot be kept. Throws std::bad_alloc before the frame has begun.
    bool send(MessageType type, std::uint64_t request_id, std::uint32_t poll_hint_ns, std::span<const std::byte> front,
              std::span<const std::byte> rest, std::shared_ptr<BufferMapping> keep = nullptr);
    // Sends the kept bytes. False when the peer is gone.
    bool flush();
    std::size_t unsent() const { return unsent_; }

    // State of the protocol.
    bool greeted = false;
    std::uint64_t incarnation = 0;
    std::uint32_t in_flight = 0;  // requests without a final reply
    bool exclusive = false;       // a worker handles one of its requests: nothing is read until it is done
    bool held_back = false;       // limits stopped the parsing
    std::uint32_t events = 0;     // epoll's mask; 0: not registered
    ConnectionPace pace;
    StagedTombstones staged;
    SentBitmaps bitmaps;
    std::unordered_map<std::uint64_t, std::shared_ptr<QueuedCancel>> searches;  // queued ones, by next_search
    std::uint64_t next_search = 0;

private:
    struct Segment {
        std::vector<std::byte> bytes;
        std::size_t sent = 0;
        std::shared_ptr<BufferMapping> descriptor;
    };
    void keep_unsent(std::span<const std::span<const std::byte>> pieces, std::size_t skip,
                     std::shared_ptr<BufferMapping> descriptor);
    // Bytes taken by the socket; -1 when the peer is gone.
    ssize_t write(std::span<const std::span<const std::byte>> pieces, int descriptor);

    FileDescriptor socket_;
    const std::uint64_t id_;
    FrameReader reader_;
    std::deque<Segment> segments_;
    std::size_t unsent_ = 0;
};

}  // namespace pgwarp
