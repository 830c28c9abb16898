#include "engine/server/transfer_buffers.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "methods/method.h"

namespace pgwarp
{

BufferMapping::BufferMapping(std::uint64_t bytes) : size_(bytes)
{
    const auto fail = [](const char* what) { throw std::system_error(errno, std::generic_category(), what); };
    file_ = FileDescriptor(::memfd_create("pgwarp-transfer", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!file_) fail("cannot make a transfer buffer");
    if (::ftruncate(file_.get(), static_cast<off_t>(bytes)) != 0) fail("cannot size a transfer buffer");
    if (::fcntl(file_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
        fail("cannot seal a transfer buffer");
    void* const map = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
    if (map == MAP_FAILED) fail("cannot map a transfer buffer");
    data_ = static_cast<std::byte*>(map);
}

BufferMapping::~BufferMapping()
{
    if (data_ != nullptr) ::munmap(data_, size_);
}

TransferBuffers::TransferBuffers(std::uint32_t bulk, std::uint32_t query) : buffers_(bulk + query), bulk_(bulk) {}

std::optional<TransferBuffers::Lease> TransferBuffers::lease(BufferPurpose purpose, std::uint64_t connection,
                                                             Ticket ticket)
{
    std::lock_guard lock(mutex_);
    // Queries take a reserved buffer first, then a bulk one; bulk work never takes a reserved one.
    const auto reserved = buffers_.begin() + bulk_;
    const auto is_free = [](const Buffer& buffer) { return buffer.connection == 0; };
    auto found = buffers_.end();
    if (purpose == BufferPurpose::query) found = std::find_if(reserved, buffers_.end(), is_free);
    if (found == buffers_.end()) {
        const auto bulk = std::find_if(buffers_.begin(), reserved, is_free);
        if (bulk != reserved) found = bulk;
    }
    if (found == buffers_.end()) {
        waiters_.push_back(ticket);
        return std::nullopt;
    }
    if (!found->mapping) found->mapping = std::make_shared<BufferMapping>(transfer_buffer_bytes);
    found->connection = connection;
    return Lease{static_cast<std::uint32_t>(found - buffers_.begin()), found->mapping};
}

std::vector<Ticket> TransferBuffers::take_waiters()
{
    return std::exchange(waiters_, {});
}

bool TransferBuffers::give_back(std::uint32_t buffer, std::uint64_t connection)
{
    std::vector<Ticket> waiting;
    {
        std::lock_guard lock(mutex_);
        if (buffer >= buffers_.size() || buffers_[buffer].connection != connection) return false;
        buffers_[buffer].connection = 0;
        waiting = take_waiters();
    }
    wake(waiting);
    return true;
}

void TransferBuffers::reclaim(std::uint64_t connection)
{
    std::vector<Ticket> waiting;
    {
        std::lock_guard lock(mutex_);
        bool any = false;
        for (Buffer& buffer : buffers_) {
            if (buffer.connection != connection) continue;
            // The client may still write to it: no other connection gets this memory.
            buffer.mapping.reset();
            buffer.connection = 0;
            any = true;
        }
        if (any) waiting = take_waiters();
    }
    wake(waiting);
}

void TransferBuffers::forget(Ticket ticket)
{
    std::lock_guard lock(mutex_);
    std::erase(waiters_, ticket);
}

TransferBuffers::Part TransferBuffers::part(std::uint32_t buffer, std::uint64_t connection, std::uint64_t offset,
                                            std::uint64_t length)
{
    std::lock_guard lock(mutex_);
    if (buffer >= buffers_.size() || buffers_[buffer].connection != connection) {
        throw BadRequest("transfer buffer that the sender doesn't hold");
    }
    const std::span<std::byte> all = buffers_[buffer].mapping->bytes();
    if (offset > all.size() || length > all.size() - offset) throw BadRequest("past the end of the transfer buffer");
    return {buffers_[buffer].mapping, all.subspan(offset, length)};
}

std::uint32_t TransferBuffers::leased() const
{
    std::lock_guard lock(mutex_);
    return static_cast<std::uint32_t>(
        std::count_if(buffers_.begin(), buffers_.end(), [](const Buffer& buffer) { return buffer.connection != 0; }));
}

}  // namespace pgwarp
