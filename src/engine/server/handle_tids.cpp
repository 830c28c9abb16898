// The handler of bitmaps of heap addresses, which searches of the same connection name.
#include "engine/server/handlers.h"

namespace pgwarp
{

namespace
{

constexpr std::size_t few_words = 8192;  // words of a bitmap that an I/O thread takes itself

}  // namespace

void handle_load_tids(IoThread& thread, const Request& request)
{
    const LoadTidsMessage message = decode_load_tids(request.payload);
    const bool brief = message.request.first + message.words.size() <= few_words;
    thread.run_exclusive(request, brief, [connection = request.connection, message] {
        connection->bitmaps.add(message.request, message.words);
        return std::vector<std::byte>();
    });
}

}  // namespace pgwarp
