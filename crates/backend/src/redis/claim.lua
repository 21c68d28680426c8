-- Claims the account KEYS[1] for the epoch ARGV[1]. ARGV[2] is 1 where the newest login is the home, ARGV[3] the newest epoch that the caller
-- knows of, ARGV[4] for how many milliseconds the claim is kept, ARGV[5] the epochs that live, each between commas.
-- The epoch that had the account and lives, the caller's included; nothing if there is none.
--
-- The value is an epoch, or "EPOCH<BEFORE" after BEFORE was replaced and until the next claim: an answer that was lost is given again.
local value = redis.call('GET', KEYS[1])
local epoch, before
if value then
    epoch, before = string.match(value, '^(%d+)<?(%d*)$')
end

local function lives(e)
    return tonumber(e) > tonumber(ARGV[3]) or string.find(ARGV[5], ',' .. e .. ',', 1, true)
end

local function keep(v)
    redis.call('SET', KEYS[1], v, 'PX', ARGV[4])
end

if epoch == ARGV[1] then
    keep(epoch)
    if before ~= '' and ARGV[2] == '1' and lives(before) then
        return before
    end
    return epoch
end
if not epoch or not lives(epoch) then
    keep(ARGV[1])
    return false
end
if ARGV[2] == '1' then
    keep(ARGV[1] .. '<' .. epoch)
end
return epoch
