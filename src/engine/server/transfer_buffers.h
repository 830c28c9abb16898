// The fixed pool of transfer buffers: memfds, sealed against shrink and growth, leased to one connection at a time and
// made when first needed. Some are reserved for queries, so that builds can't starve them.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "engine/server/file_descriptor.h"
#include "engine/server/ticket.h"
#include "protocol/messages.h"

namespace pgwarp
{

inline constexpr std::uint32_t bulk_buffers = 24;  // a parallel build takes one for each worker, a load some
inline constexpr std::uint32_t query_buffers = 2;

// A buffer's memory as this process sees it. The file can't shrink: touching it never faults.
class BufferMapping
{
public:
    explicit BufferMapping(std::uint64_t bytes);
    ~BufferMapping();
    BufferMapping(const BufferMapping&) = delete;
    BufferMapping& operator=(const BufferMapping&) = delete;
    int fd() const { return file_.get(); }
    std::span<std::byte> bytes() const { return {data_, size_}; }

private:
    FileDescriptor file_;
    std::byte* data_ = nullptr;
    std::uint64_t size_ = 0;
};

class TransferBuffers
{
public:
    TransferBuffers(std::uint32_t bulk, std::uint32_t query);

    struct Lease {
        std::uint32_t buffer;
        std::shared_ptr<BufferMapping> mapping;
    };
    // A free buffer for the connection; nothing when all are leased: `ticket` is then woken when one comes back.
    std::optional<Lease> lease(BufferPurpose purpose, std::uint64_t connection, Ticket ticket);
    // Gives one back. False when the connection doesn't hold it.
    bool give_back(std::uint32_t buffer, std::uint64_t connection);
    // Takes back all that a connection holds.
    void reclaim(std::uint64_t connection);
    void forget(Ticket ticket);

    // The part [offset, offset + length) of a buffer that the connection holds. Throws BadRequest.
    // The mapping keeps the bytes alive after the end of the lease.
    struct Part {
        std::shared_ptr<BufferMapping> mapping;
        std::span<std::byte> bytes;
    };
    Part part(std::uint32_t buffer, std::uint64_t connection, std::uint64_t offset, std::uint64_t length);

    std::uint32_t leased() const;

private:
    struct Buffer {
        std::shared_ptr<BufferMapping> mapping;
        std::uint64_t connection = 0;  // 0 = free
    };
    std::vector<Ticket> take_waiters();

    mutable std::mutex mutex_;
    std::vector<Buffer> buffers_;  // bulk ones first
    const std::uint32_t bulk_;
    std::vector<Ticket> waiters_;
};

}  // namespace pgwarp
